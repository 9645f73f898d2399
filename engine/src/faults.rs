//! Several arguments at fault, told at once: whoever corrects them one by one
//! would call once for each.

use crate::EngineError;

/// What is wrong, by argument, in the order it was found.
#[derive(Debug, Default)]
pub struct Faults(Vec<(String, EngineError)>);

impl Faults {
    /// Keeps what is right, and notes what is not; of each argument the first.
    pub fn kept<T>(&mut self, name: &str, read: Result<T, EngineError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                if !self.names(name) {
                    self.0.push((name.to_owned(), error));
                }
                None
            }
        }
    }

    /// Whether something is wrong with this one.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(noted, _)| noted == name)
    }

    /// One fault is told as it is, several in one sentence that names each.
    pub fn end(self) -> Result<(), EngineError> {
        let mut faults = self.0.into_iter();
        let Some((name, first)) = faults.next() else { return Ok(()) };
        let others: Vec<String> = faults.map(|(name, error)| named(&name, &error)).collect();
        if others.is_empty() {
            return Err(first);
        }
        let reason = format!("{}; {}", reason(&first), others.join("; "));
        Err(EngineError::ArgumentInvalid { name: at(&name, &first).to_owned(), reason })
    }
}

/// The place a fault names itself is the nearer one: `hosts[1]`.
fn at<'a>(name: &'a str, error: &'a EngineError) -> &'a str {
    match error {
        EngineError::ArgumentInvalid { name, .. } => name,
        _ => name,
    }
}

fn reason(error: &EngineError) -> String {
    match error {
        EngineError::ArgumentInvalid { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

fn named(name: &str, error: &EngineError) -> String {
    format!("argument `{}`: {}", at(name, error), reason(error))
}
