//! The fields of a form that may hold a name more than once, which a struct
//! cannot say. Which names count is the page's; a form with too many fields is
//! none of ours.

use crate::error::Problem;

/// Fields of the largest form: a host and an agent each, with room.
const FIELDS_MAX: usize = 512;

/// Names and values, in order.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads an urlencoded body.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Problem> {
        let read: Result<Vec<(String, String)>, _> = serde_urlencoded::from_bytes(body);
        match read {
            Ok(fields) if fields.len() <= FIELDS_MAX => Ok(Self(fields)),
            Ok(_) | Err(_) => Err(Problem::form()),
        }
    }

    /// The first of a name, empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The first of a name, taken out: what is shown again does not hold it.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let text = self.text(name).to_owned();
        self.0.retain(|(found, _)| found != name);
        text
    }

    /// All of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether a box with this value was ticked.
    pub(crate) fn says(&self, name: &str, value: &str) -> bool {
        self.text(name) == value
    }
}
