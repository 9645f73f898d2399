//! From a row's columns to our types. A column that does not parse is a corrupt
//! row: named by its column, never by its value.

use cambium_engine::ToolName;
use cambium_proxy::{ContentHash, StoreFault};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite};

use crate::error::fault;

/// Typed reads of one row.
pub(crate) trait Read {
    /// A column as the database has it.
    fn get_as<'r, T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>>(
        &'r self,
        column: &str,
    ) -> Result<T, StoreFault>;

    /// Text that is the wrapped value itself: an id.
    fn id<T>(&self, column: &str, wrap: impl Fn(String) -> T) -> Result<T, StoreFault> {
        Ok(wrap(self.get_as::<String>(column)?))
    }

    /// A whole number that is never negative.
    fn unsigned<T: TryFrom<i64>>(&self, column: &str) -> Result<T, StoreFault> {
        T::try_from(self.get_as::<i64>(column)?).map_err(|_| corrupt(column))
    }

    /// 0 or 1.
    fn flag(&self, column: &str) -> Result<bool, StoreFault> {
        match self.get_as::<i64>(column)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(corrupt(column)),
        }
    }

    /// A wire name.
    fn tool(&self, column: &str) -> Result<ToolName, StoreFault> {
        ToolName::parse(self.get_as(column)?).map_err(|_| corrupt(column))
    }

    /// 64 hexadecimal digits.
    fn digest(&self, column: &str) -> Result<ContentHash, StoreFault> {
        ContentHash::try_from(self.get_as::<String>(column)?).map_err(|_| corrupt(column))
    }

    /// JSON text.
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreFault> {
        serde_json::from_str(self.get_as(column)?).map_err(|_| corrupt(column))
    }

    /// JSON text or nothing.
    fn json_if<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreFault> {
        let text: Option<&str> = self.get_as(column)?;
        text.map(|text| serde_json::from_str(text).map_err(|_| corrupt(column))).transpose()
    }

    /// The text of a fieldless enum, as serde writes it without its quotes.
    fn word<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreFault> {
        let text: String = self.get_as(column)?;
        serde_json::from_value(text.into()).map_err(|_| corrupt(column))
    }
}

impl Read for SqliteRow {
    fn get_as<'r, T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>>(
        &'r self,
        column: &str,
    ) -> Result<T, StoreFault> {
        self.try_get(column).map_err(fault)
    }
}

/// JSON text of a value, to be stored.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreFault> {
    serde_json::to_string(value)
        .map_err(|error| StoreFault::Unavailable(format!("a value cannot be stored: {error}")))
}

/// The text of a fieldless enum, as [`Read::word`] reads it.
pub(crate) fn to_word<T: Serialize>(value: &T) -> Result<String, StoreFault> {
    Ok(to_json(value)?.trim_matches('"').to_owned())
}

/// A whole number as the database holds it.
pub(crate) fn whole(number: u64) -> Result<i64, StoreFault> {
    i64::try_from(number)
        .map_err(|_| StoreFault::Conflict(format!("{number} is beyond what can be stored")))
}

/// A column that does not parse.
pub(crate) fn corrupt(column: &str) -> StoreFault {
    StoreFault::Corrupt(format!("column {column} does not hold what it should"))
}

/// Refuses an insert or update that found nothing to belong to.
pub(crate) fn belongs(affected: u64, what: &str) -> Result<(), StoreFault> {
    if affected == 0 {
        return Err(StoreFault::Conflict(format!("there is no such {what}")));
    }
    Ok(())
}
