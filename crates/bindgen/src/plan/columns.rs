//! The numbers in the elements of a stream.

use super::{Kind, Plan, Type, TypeIndex};
use crate::model::Scalar;

/// A number in each element of a stream. A batch of elements can offer it as a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The names in WIT of the fields that lead to the number. A part of a tuple has its number as
    /// its name. Empty if the elements are numbers themselves.
    pub path: Vec<String>,
    /// The offset in an element.
    pub offset: u32,
    /// The type.
    pub number: Scalar,
}

impl Plan<'_> {
    /// The type as a number, if every bit pattern of it is a value.
    pub fn number(&self, index: TypeIndex) -> Option<Scalar> {
        match self.get(index).kind {
            Kind::Scalar(scalar) if scalar.is_number() => Some(scalar),
            _ => None,
        }
    }

    /// The columns of a stream of `element`: its numbers, those of its fields, and so on. An enum is the
    /// number of its case.
    ///
    /// ```
    /// use thalweg_bindgen::{parse_text, plan::Plan};
    ///
    /// let wit = "package a:b@0.1.0; interface i { record point { x: s32, y: s32 }
    ///     f: func() -> stream<tuple<string, point>>; } world w { export i; }";
    /// let package = parse_text("b.wit".as_ref(), wit, "")?;
    /// let plan = Plan::new(&package);
    /// let columns = plan.columns(plan.streams[0].element.expect("the tuple"));
    /// assert_eq!((columns[1].path.join("."), columns[1].offset), ("1.y".to_owned(), 12));
    /// # Ok::<(), thalweg_bindgen::SourceError>(())
    /// ```
    pub fn columns(&self, element: TypeIndex) -> Vec<Column> {
        let Type { kind, size, .. } = self.get(element);
        let case = match (kind, size) {
            (Kind::Enum(_), 1) => Some(Scalar::U8),
            (Kind::Enum(_), 2) => Some(Scalar::U16),
            (Kind::Enum(_), _) => Some(Scalar::U32),
            _ => None,
        };
        if let Some(number) = self.number(element).or(case) {
            return vec![Column {
                path: Vec::new(),
                offset: 0,
                number,
            }];
        }
        let Kind::Record(members) = kind else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let name = match member.name {
                "" => number.to_string(),
                name => name.to_owned(),
            };
            for mut column in self.columns(member.ty) {
                column.path.insert(0, name.clone());
                column.offset += member.offset;
                all.push(column);
            }
        }
        all
    }
}
