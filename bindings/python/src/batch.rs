//! A batch of records in place: views of the records, or objects created from all of them at once.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use thalweg_capi::abi::{TW_BATCH_CONTROL, TwBatch};

use crate::decode::{DecodeError, Decoder};
use crate::gil::GilCell;
use crate::message::Region;
use crate::raw_type;
use crate::reader::Reader;
use crate::{arrow, columns, errors, view};

/// Records of a stream in the library's memory, until the batch is released.
#[pyclass(frozen, weakref, module = "thalweg._native")]
pub struct Batch {
    /// The reader that acquired the batch.
    pub reader: Arc<Reader>,
    /// The serial number of the batch in that reader.
    serial: u64,
    /// The batch's memory. It is used only while `serial` is the open batch.
    pub region: Region,
    slots: u32,
    raw: TwBatch,
}

// SAFETY: the pointers lead into the library's memory, which belongs to no thread. They are
// followed only with the GIL held and the batch open.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

impl Batch {
    /// A batch that `reader` just acquired.
    pub fn new(py: Python<'_>, reader: Arc<Reader>, raw: TwBatch, serial: u64) -> PyResult<Self> {
        let size = usize::try_from(raw.size)
            .map_err(|_| PyOverflowError::new_err("a batch of more than memory"))?;
        // SAFETY: the table guarantees that `size` bytes from `base` are readable while the batch
        // is open. The serial number is checked before each use.
        let region = unsafe { Region::new(raw.base, size) };
        let slots = region.offset_of(raw.slots).and_then(|slots| {
            let length = u64::from(raw.count) * u64::from(raw.stride);
            region.bytes(slots, usize::try_from(length).ok()?).ok()?;
            Some(slots)
        });
        match slots {
            Some(slots) => Ok(Self {
                reader,
                serial,
                region,
                slots,
                raw,
            }),
            None => {
                reader.release(py, serial);
                Err(errors::argument(
                    py,
                    &format!("malformed batch from the library in {}", reader.name),
                ))
            }
        }
    }

    /// The serial number of the batch in its stream.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The number of records.
    pub fn count(&self) -> u32 {
        self.raw.count
    }

    /// Whether the batch is of the control lane.
    pub fn is_control(&self) -> bool {
        self.raw.flags & TW_BATCH_CONTROL != 0
    }

    /// Whether the batch may be read.
    pub fn is_open(&self, py: Python<'_>) -> bool {
        self.reader.is_open(py, self.serial)
    }

    /// The exception for a batch that was released.
    pub fn released(&self, py: Python<'_>) -> PyErr {
        errors::closed(py, "the batch")
    }

    /// Checks that the batch may be read.
    ///
    /// # Errors
    /// `thalweg.Closed` if it was released.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_open(py) {
            Ok(())
        } else {
            Err(self.released(py))
        }
    }

    /// The address of the part at offset `at` of the first record, of `size` bytes, and the
    /// distance to the same part of the next record.
    pub fn rows(&self, at: u32, size: u32) -> PyResult<(*const u8, u32)> {
        if u64::from(at) + u64::from(size) > u64::from(self.raw.stride) {
            return Err(PyOverflowError::new_err("a field outside of its record"));
        }
        // The part is inside the first slot; `new` has checked the slots.
        Ok((self.raw.slots.wrapping_add(at as usize), self.raw.stride))
    }

    /// The offset of record `place`. `new` has checked all slots.
    pub fn at(&self, place: u32) -> u32 {
        self.slots + place * self.raw.stride
    }

    /// The record at `at` as an object.
    pub fn object<'py>(&self, py: Python<'py>, at: u32) -> Result<Bound<'py, PyAny>, DecodeError> {
        let _pin = self.reader.pin(py);
        Decoder::field(py, self.region).value(&self.reader.element, at)
    }

    /// The records as objects.
    pub fn all_objects<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.check(py)?;
        let _pin = self.reader.pin(py);
        let mut decoder = Decoder::field(py, self.region);
        (0..self.raw.count)
            .map(|place| decoder.value(&self.reader.element, self.at(place)))
            .collect::<Result<_, _>>()
            .map_err(|undecodable| undecodable.raise(py, &self.reader.name))
    }

    fn record<'py>(slf: &Bound<'py, Self>, place: u32) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        this.check(py)?;
        match &this.reader.view {
            Some(class) => view::new(class.bind(py), slf, this.at(place)),
            None => this
                .object(py, this.at(place))
                .map_err(|undecodable| undecodable.raise(py, &this.reader.name)),
        }
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.raw.count as usize
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let count = slf.get().raw.count;
        let place = if index < 0 {
            index + count as isize
        } else {
            index
        };
        match u32::try_from(place) {
            Ok(place) if place < count => Self::record(slf, place),
            _ => Err(PyIndexError::new_err("no such record in the batch")),
        }
    }

    fn __iter__(slf: &Bound<'_, Self>) -> Records {
        Records {
            batch: slf.clone().unbind(),
            next: GilCell::new(0),
        }
    }

    /// All records as objects, created at once. They outlive the batch.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.all_objects(py)?)
    }

    /// The records in place, as one `memoryview` of structures: `numpy.asarray(batch.array())` is a
    /// structured array.
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        columns::buffer(self, py, None)
    }

    /// One field of all records in place, as a `memoryview`; `"place.line"` is the field `line` of
    /// the field `place`.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        columns::buffer(self, py, Some(name))
    }

    /// The records in Arrow's C data interface: a schema and an array, each in a capsule.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        // The requested schema is only a hint; the consumer can cast.
        drop(requested_schema);
        arrow::export(self, py)
    }

    /// Returns the memory to the library. From then on, views of the batch raise. A second call has
    /// no effect.
    fn release(&self, py: Python<'_>) {
        self.reader.release(py, self.serial);
    }

    /// Whether the batch was released.
    #[getter(released)]
    fn is_released(&self, py: Python<'_>) -> bool {
        !self.is_open(py)
    }

    /// The number of the first record, counted from 0 at the start of the stream.
    #[getter]
    fn first_seq(&self) -> u64 {
        self.raw.first_seq
    }

    /// Records lost directly before the first record.
    #[getter]
    fn lost_before(&self) -> u64 {
        self.raw.lost_before
    }

    /// Why they were lost: `TW_GAP_*`, or 0 if none was lost.
    #[getter]
    fn gap_reason(&self) -> u32 {
        self.raw.gap_reason
    }

    /// Whether the batch is of the control lane, whose records are never dropped, come first, and
    /// have their own numbers.
    #[getter]
    fn control(&self) -> bool {
        self.is_control()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.reader.release(py, self.serial);
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // While the interpreter shuts down, the end of the stream returns the memory.
        Python::try_attach(|py| self.reader.release(py, self.serial));
    }
}

/// An iterator over the records of a batch.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Records {
    batch: Py<Batch>,
    next: GilCell<u32>,
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = self.batch.bind(py);
        let place = self.next.get(py);
        if place >= batch.get().raw.count {
            return Ok(None);
        }
        self.next.set(py, place + 1);
        Batch::record(batch, place).map(Some)
    }
}
