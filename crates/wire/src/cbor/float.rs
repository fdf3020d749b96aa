//! Lossless conversions between floats of 16, 32 and 64 bits.
//!
//! They work on the bits, because the processor's conversions make a signalling NaN quiet.

/// Fraction bits of the three widths, and the differences between them.
const F16: u32 = 10;
const F32: u32 = 23;
const F64: u32 = 52;

const fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The float as 32 bits, if nothing is lost.
pub fn f32_of_f64(bits: u64) -> Option<u32> {
    let value = f64::from_bits(bits);
    if value.is_nan() {
        let (sign, fraction) = (bits >> 63, bits & low(F64));
        let lost = fraction & low(F64 - F32);
        let narrow = (sign << 31) | (0xff << F32) | (fraction >> (F64 - F32));
        return (lost == 0).then_some(narrow as u32);
    }
    let narrow = value as f32;
    (f64::from(narrow).to_bits() == bits).then_some(narrow.to_bits())
}

/// The float as 16 bits, if nothing is lost.
pub fn f16_of_f32(bits: u32) -> Option<u16> {
    let sign = (bits >> 16) & 0x8000;
    let exponent = (bits >> F32) & 0xff;
    let fraction = bits & low(F32) as u32;
    // The bits of the fraction that fit, if the remaining bits are zero.
    let top = |from: u32, lost: u32| (from & low(lost) as u32 == 0).then_some(from >> lost);
    let narrow = match exponent {
        0 if fraction == 0 => 0,
        0xff => (0x1f << F16) | top(fraction, F32 - F16)?,
        // 2^-14 to 2^15.
        113..=142 => ((exponent - 112) << F16) | top(fraction, F32 - F16)?,
        // Subnormal: multiples of 2^-24.
        103..=112 => top(fraction | 1 << F32, 126 - exponent)?,
        _ => return None,
    };
    Some((sign | narrow) as u16)
}

/// The float as 32 bits.
pub fn f32_of_f16(bits: u16) -> u32 {
    let bits = u32::from(bits);
    let sign = (bits & 0x8000) << 16;
    let fraction = bits & low(F16) as u32;
    let wide = match (bits >> F16) & 0x1f {
        // Multiples of 2^-24, exact as 32 bits.
        0 => (fraction as f32 * f32::from_bits(103 << F32)).to_bits(),
        0x1f => (0xff << F32) | fraction << (F32 - F16),
        exponent => (exponent + 112) << F32 | fraction << (F32 - F16),
    };
    sign | wide
}

/// The float as 64 bits.
pub fn f64_of_f32(bits: u32) -> u64 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let fraction = u64::from(bits) & low(F32);
        return (u64::from(bits >> 31) << 63) | (0x7ff << F64) | fraction << (F64 - F32);
    }
    f64::from(value).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back_from_a_single_and_a_double() {
        for half in 0..=u16::MAX {
            let single = f32_of_f16(half);
            assert_eq!(f16_of_f32(single), Some(half), "{half:#06x}");
            assert_eq!(f32_of_f64(f64_of_f32(single)), Some(single), "{half:#06x}");
        }
    }

    #[test]
    fn the_values_of_rfc_8949() {
        for (half, value) in [
            (0x0001, 5.960_464_5e-8_f32),
            (0x0400, 0.000_061_035_156),
            (0x3c00, 1.0),
            (0x7bff, 65504.0),
            (0xc400, -4.0),
        ] {
            assert_eq!(f16_of_f32(value.to_bits()), Some(half));
        }
    }

    #[test]
    fn what_would_lose_a_bit_stays_wide() {
        assert_eq!(f16_of_f32(65505.0_f32.to_bits()), None);
        assert_eq!(f16_of_f32(3e-8_f32.to_bits()), None);
        assert_eq!(f16_of_f32(1e30_f32.to_bits()), None);
        assert_eq!(f16_of_f32(0x7f80_0001), None); // a NaN whose payload is low
        assert_eq!(f32_of_f64(1.1_f64.to_bits()), None);
        assert_eq!(f32_of_f64(0x7ff0_0000_0000_0001), None);
        assert_eq!(f32_of_f64(1e300_f64.to_bits()), None);
    }
}
