//! `minicbor`, by hand: maps whose keys are the field names, in the order of their encoded bytes,
//! so the output is byte for byte that of our CBOR. The decoder accepts the keys in any order, and
//! refuses unknown keys.

use minicbor::decode::Error;
use minicbor::encode::write::Write;
use minicbor::{Decoder, Encoder};

use super::values::{BytesPayload, ComplexRequest, EchoRequest, EchoResponse, ends};
use super::{Codec, InPlace, Value};

/// `minicbor`.
#[derive(Debug)]
pub struct Minicbor;

/// The hand-written code for a type.
pub trait ByHand: Value {
    /// Writes the value.
    ///
    /// # Errors
    /// The error that the sink reports.
    fn write<W: Write>(&self, to: &mut Encoder<W>)
    -> Result<(), minicbor::encode::Error<W::Error>>;

    /// Reads a value.
    ///
    /// # Errors
    /// The input is not of this type.
    fn read(from: &mut Decoder<'_>) -> Result<Self, Error>;

    /// Reads a value in place: [`Value::sum`].
    ///
    /// # Errors
    /// The input is not of this type.
    fn look(from: &mut Decoder<'_>) -> Result<u64, Error>;
}

/// Calls `each` for every key of a map of definite length.
fn each<'b>(
    from: &mut Decoder<'b>,
    mut field: impl FnMut(&'b str, &mut Decoder<'b>) -> Result<(), Error>,
) -> Result<(), Error> {
    let fields = from.map()?.ok_or(Error::message("of no definite length"))?;
    for _ in 0..fields {
        let key = from.str()?;
        field(key, from)?;
    }
    Ok(())
}

fn unknown() -> Result<(), Error> {
    Err(Error::message("an unknown key"))
}

fn there<T>(field: Option<T>) -> Result<T, Error> {
    field.ok_or(Error::message("a missing field"))
}

fn count(from: &mut Decoder<'_>) -> Result<u64, Error> {
    from.array()?.ok_or(Error::message("of no definite length"))
}

/// `null`, or the value that `read` reads.
fn optional<'b, T>(
    from: &mut Decoder<'b>,
    read: impl FnOnce(&mut Decoder<'b>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    if from.datatype()? == minicbor::data::Type::Null {
        from.null()?;
        Ok(None)
    } else {
        read(from).map(Some)
    }
}

impl ByHand for EchoRequest {
    fn write<W: Write>(
        &self,
        to: &mut Encoder<W>,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        to.map(2)?;
        to.str("message")?.str(&self.message)?;
        to.str("delay-ms")?.i64(self.delay_ms)?;
        Ok(())
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, Error> {
        let (mut message, mut delay_ms) = (None, None);
        each(from, |key, from| {
            match key {
                "message" => message = Some(from.str()?.to_owned()),
                "delay-ms" => delay_ms = Some(from.i64()?),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(Self {
            message: there(message)?,
            delay_ms: there(delay_ms)?,
        })
    }

    fn look(from: &mut Decoder<'_>) -> Result<u64, Error> {
        let mut sum = 0u64;
        each(from, |key, from| {
            match key {
                "message" => sum += ends(from.str()?.as_bytes()),
                "delay-ms" => sum = sum.wrapping_add_signed(from.i64()?),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

impl ByHand for EchoResponse {
    fn write<W: Write>(
        &self,
        to: &mut Encoder<W>,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        to.map(2)?;
        to.str("echoed")?.str(&self.echoed)?;
        to.str("timer-name")?.str(&self.timer_name)?;
        Ok(())
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, Error> {
        let (mut echoed, mut timer_name) = (None, None);
        each(from, |key, from| {
            match key {
                "echoed" => echoed = Some(from.str()?.to_owned()),
                "timer-name" => timer_name = Some(from.str()?.to_owned()),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(Self {
            echoed: there(echoed)?,
            timer_name: there(timer_name)?,
        })
    }

    fn look(from: &mut Decoder<'_>) -> Result<u64, Error> {
        let mut sum = 0;
        each(from, |key, from| {
            match key {
                "echoed" | "timer-name" => sum += ends(from.str()?.as_bytes()),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

impl ByHand for ComplexRequest {
    fn write<W: Write>(
        &self,
        to: &mut Encoder<W>,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        to.map(4)?;
        to.str("note")?;
        match &self.note {
            Some(note) => to.str(note)?,
            None => to.null()?,
        };
        to.str("tags")?.array(self.tags.len() as u64)?;
        for tag in &self.tags {
            to.str(tag)?;
        }
        to.str("retries")?;
        match self.retries {
            Some(retries) => to.i64(retries)?,
            None => to.null()?,
        };
        to.str("messages")?.array(self.messages.len() as u64)?;
        for message in &self.messages {
            message.write(to)?;
        }
        Ok(())
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, Error> {
        let (mut messages, mut tags, mut note, mut retries) = (None, None, None, None);
        each(from, |key, from| {
            match key {
                "messages" => {
                    let count = count(from)?;
                    let mut all = Vec::with_capacity(count.min(64) as usize);
                    for _ in 0..count {
                        all.push(EchoRequest::read(from)?);
                    }
                    messages = Some(all);
                }
                "tags" => {
                    let count = count(from)?;
                    let mut all = Vec::with_capacity(count.min(64) as usize);
                    for _ in 0..count {
                        all.push(from.str()?.to_owned());
                    }
                    tags = Some(all);
                }
                "note" => note = optional(from, |from| Ok(from.str()?.to_owned()))?,
                "retries" => retries = optional(from, Decoder::i64)?,
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(Self {
            messages: there(messages)?,
            tags: there(tags)?,
            note,
            retries,
        })
    }

    fn look(from: &mut Decoder<'_>) -> Result<u64, Error> {
        let mut sum = 0u64;
        each(from, |key, from| {
            match key {
                "messages" => {
                    for _ in 0..count(from)? {
                        sum += EchoRequest::look(from)?;
                    }
                }
                "tags" => {
                    for _ in 0..count(from)? {
                        sum += ends(from.str()?.as_bytes());
                    }
                }
                "note" => {
                    let note = optional(from, |from| Ok(ends(from.str()?.as_bytes())))?;
                    sum += note.unwrap_or(0);
                }
                "retries" => {
                    let retries = optional(from, Decoder::i64)?;
                    sum = sum.wrapping_add_signed(retries.unwrap_or(0));
                }
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

impl ByHand for BytesPayload {
    fn write<W: Write>(
        &self,
        to: &mut Encoder<W>,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        to.map(1)?.str("data")?.bytes(&self.data)?;
        Ok(())
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, Error> {
        let mut data = None;
        each(from, |key, from| {
            match key {
                "data" => data = Some(from.bytes()?.to_vec()),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(Self { data: there(data)? })
    }

    fn look(from: &mut Decoder<'_>) -> Result<u64, Error> {
        let mut sum = 0;
        each(from, |key, from| {
            match key {
                "data" => sum += ends(from.bytes()?),
                _ => return unknown(),
            }
            Ok(())
        })?;
        Ok(sum)
    }
}

impl<V: ByHand> Codec<V> for Minicbor {
    const NAME: &'static str = "minicbor";
    type Own = V;
    type Buffer = Vec<u8>;

    fn own(value: &V) -> V {
        value.clone()
    }

    fn value(own: &V) -> V {
        own.clone()
    }

    fn encode(own: &V, buffer: &mut Vec<u8>) -> usize {
        buffer.clear();
        own.write(&mut Encoder::new(&mut *buffer))
            .expect("memory has room");
        buffer.len()
    }

    fn decode(buffer: &Vec<u8>) -> V {
        V::read(&mut Decoder::new(buffer)).expect("it was just written")
    }
}

impl<V: ByHand> InPlace<V> for Minicbor {
    fn view(buffer: &Vec<u8>) -> u64 {
        V::look(&mut Decoder::new(buffer)).expect("it was just written")
    }
}
