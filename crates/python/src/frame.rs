//! Columns as Python objects: lists, an Arrow table, a data frame. A column's type is that of what
//! it may hold, and does not depend on what it happens to hold.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use telltale_query::{Field, FieldKind};

use crate::package::package;

/// What a column holds, beside `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Whole,
    Number,
    /// A moment in UTC.
    Moment,
}

/// Columns of one length, in their order.
pub(crate) struct Columns<'py> {
    columns: Vec<TypedColumn<'py>>,
}

struct TypedColumn<'py> {
    name: &'static str,
    of: ColumnType,
    values: Bound<'py, PyList>,
}

// === impl ColumnType ===

impl ColumnType {
    /// What a field may hold.
    pub(crate) fn of(field: &Field) -> Self {
        match field.kind {
            FieldKind::Text | FieldKind::Word(_) => Self::Text,
            FieldKind::Number(_) if field.is_whole() => Self::Whole,
            FieldKind::Number(_) => Self::Number,
        }
    }

    fn arrow<'py>(self, pyarrow: &Bound<'py, PyModule>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Text => pyarrow.call_method0("string"),
            Self::Whole => pyarrow.call_method0("int64"),
            Self::Number => pyarrow.call_method0("float64"),
            Self::Moment => pyarrow.call_method1("timestamp", ("us", "UTC")),
        }
    }

    /// The name of a type of pandas that has missing values.
    const fn pandas(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Whole => "Int64",
            Self::Number => "Float64",
            Self::Moment => "datetime64[ns, UTC]",
        }
    }
}

// === impl Columns ===

impl<'py> Columns<'py> {
    pub(crate) const fn new() -> Self {
        Self { columns: Vec::new() }
    }

    /// Adds a column behind the others.
    pub(crate) fn push(&mut self, name: &'static str, of: ColumnType, values: Bound<'py, PyList>) {
        self.columns.push(TypedColumn { name, of, values });
    }

    /// Adds a column before the others. One that has its name already gets another.
    pub(crate) fn put_first(
        &mut self,
        name: &'static str,
        of: ColumnType,
        values: Bound<'py, PyList>,
        other_name: &'static str,
    ) {
        for column in self.columns.iter_mut().filter(|column| column.name == name) {
            column.name = other_name;
        }
        self.columns.insert(0, TypedColumn { name, of, values });
    }

    /// Adds rows of the same columns below.
    pub(crate) fn extend(&mut self, other: Self) -> PyResult<()> {
        debug_assert!(
            self.columns.iter().map(|it| it.name).eq(other.columns.iter().map(|it| it.name)),
            "rows of one kind have the same columns"
        );
        for (column, more) in self.columns.iter().zip(other.columns) {
            column.values.call_method1("extend", (more.values,))?;
        }
        Ok(())
    }

    /// The lists by name.
    pub(crate) fn to_dict(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for column in &self.columns {
            columns.set_item(column.name, &column.values)?;
        }
        Ok(columns)
    }

    /// An Arrow table. Needs pyarrow.
    pub(crate) fn to_arrow(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pyarrow = package(py, "pyarrow")?;
        let columns = PyDict::new(py);
        for column in &self.columns {
            let array = pyarrow.call_method1("array", (&column.values, column.of.arrow(&pyarrow)?));
            columns.set_item(column.name, array?)?;
        }
        pyarrow.call_method1("table", (columns,))
    }

    /// A data frame. Needs pandas.
    pub(crate) fn to_pandas(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = package(py, "pandas")?;
        let columns = PyDict::new(py);
        for column in &self.columns {
            let array = pandas.call_method1("array", (&column.values, column.of.pandas()));
            columns.set_item(column.name, array?)?;
        }
        pandas.call_method1("DataFrame", (columns,))
    }
}
