//! What a module must pass before an author's tool is published: the check, and
//! a dry run that the vendor answered well or that stopped at a write. What is
//! told of a dry run is codes and statuses, never a value of the vendor's.

use super::{Short, Work};
use crate::command::Live;
use crate::{Diagnostic, EngineError, Envelope, PublishRequest, Published, ToolName};
use cambium_proxy::AgentId;
use serde_json::{Value, json};

/// Why a module was not published.
pub(super) enum Failing {
    /// It does not pass the check.
    Check(Vec<Diagnostic>),
    /// It passes, and its dry run shows nothing good: one sentence.
    Trial(String),
    /// No other module would do better: the job may not go on, or something of
    /// ours failed.
    Over(Short),
}

impl Work<'_> {
    /// Checks, dry-runs and publishes a module.
    pub(super) async fn try_module(
        &self,
        tool: &ToolName,
        source: &str,
        input: Option<Value>,
    ) -> Result<Published, Failing> {
        // An answer may have taken minutes, and a dry run reads at the vendor.
        self.engine.may_author(&self.row).await.map_err(Failing::Over)?;
        let agent: &AgentId = self.agent();
        tracing::debug!(%agent, %tool, "an authored module is tried");
        let request = PublishRequest {
            tool: tool.clone(),
            connection: Some(self.connection.id.to_string()),
            source: source.to_owned(),
        };
        let live = Live::new(self.engine.authoring.stop.child_token());
        let tried = self.engine.try_request(&self.caller, request, input, live).await;
        let (draft, envelope) = match tried {
            Ok(tried) => tried,
            Err(EngineError::CheckFailed(found)) => return Err(Failing::Check(found)),
            Err(error @ EngineError::InputInvalid(_)) => {
                return Err(Failing::Trial(format!("its example cannot be used: {error}")));
            }
            Err(error) => return Err(Failing::Over(error.into())),
        };
        judged(&envelope).map_err(Failing::Trial)?;
        self.engine.may_author(&self.row).await.map_err(Failing::Over)?;
        self.engine.publish_draft(draft).await.map_err(|error| Failing::Over(error.into()))
    }
}

/// Whether a dry run shows that the module works: every read was answered with
/// 2xx, and something was read, or a write was stopped.
fn judged(envelope: &Envelope) -> Result<(), String> {
    if let Some(code) = envelope.code {
        return Err(format!("its dry run ended as {code}"));
    }
    if let Some(refused) = envelope.details.as_ref().and_then(|details| details.get("refused")) {
        let code = refused[0]["code"].as_str().unwrap_or("refused");
        return Err(format!("the proxy refused its request: {code}"));
    }
    if envelope.details.is_some() {
        return Err("it threw in its dry run".into());
    }
    if let Some(status) = envelope.answered.iter().find(|status| !(200..300).contains(*status)) {
        return Err(format!("the vendor answered its dry run with {status}"));
    }
    let stopped = envelope.preview.as_ref().is_some_and(|preview| !preview.is_empty());
    match stopped || !envelope.answered.is_empty() {
        true => Ok(()),
        false => Err("it sent nothing in its dry run".into()),
    }
}

/// The shape of a value without the value: what a model may be shown.
pub(super) fn shape(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(_) => json!("boolean"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(items) => match items.first().filter(|_| depth > 0) {
            Some(first) => json!([shape(first, depth - 1)]),
            None => json!([]),
        },
        Value::Object(_) if depth == 0 => json!("object"),
        Value::Object(map) => {
            let entries = map.iter().take(40);
            entries.map(|(name, value)| (name.clone(), shape(value, depth - 1))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn a_dry_run_passes_with_a_good_read_or_a_stopped_write_and_with_nothing_else() {
        let with = |answered: &[u16]| Envelope {
            answered: answered.to_vec(),
            ..Envelope::of(Status::DryRun)
        };
        assert!(judged(&with(&[200])).is_ok());
        assert!(judged(&with(&[200, 404])).unwrap_err().contains("404"));
        assert!(judged(&with(&[])).unwrap_err().contains("sent nothing"));
        let threw = Envelope { details: Some(json!({ "thrown": "secret" })), ..with(&[200]) };
        assert!(!judged(&threw).unwrap_err().contains("secret"));
        let refused = json!({ "refused": [{ "code": "outside_call_sites", "path": "/secret" }] });
        let refused = Envelope { details: Some(refused), ..with(&[]) };
        assert!(judged(&refused).unwrap_err().ends_with("outside_call_sites"));
        let failed = Envelope { code: Some("timeout"), ..with(&[200]) };
        assert!(judged(&failed).unwrap_err().ends_with("timeout"));
    }

    #[test]
    fn a_shape_holds_no_value() {
        let value =
            json!({ "a": "secret", "b": [{ "c": 42, "d": null }], "e": { "f": { "g": true } } });
        let shown = shape(&value, 2).to_string();
        assert_eq!(shown, r#"{"a":"string","b":["object"],"e":{"f":"object"}}"#);
    }
}
