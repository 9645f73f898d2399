//! The one place where an answer becomes MCP content. The JSON is made once:
//! the same value is the text and the structured content, so the two cannot
//! differ by a byte.

use cambium_engine::{Content, EngineError, Envelope, Status};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ResourceContents};
use serde::Serialize;
use serde_json::Value;

/// Where an answer's metadata says where the time went: beside the envelope, so
/// that the same call gives the same bytes.
const TIMES: &str = "cambium/times";

/// What a dispatched call answers.
pub(crate) enum Reply {
    /// A tool's answer, or any error.
    Envelope(Box<Envelope>),
    /// A fixed tool's own shape.
    Value(Value),
}

impl Reply {
    /// The same, with what became of its question in the harness.
    pub(crate) fn noting(mut self, said: Option<&str>) -> Self {
        if let (Self::Envelope(envelope), Some(said)) = (&mut self, said)
            && envelope.status == Status::AwaitingApproval
        {
            envelope.notes.push(said.to_owned());
        }
        self
    }

    /// A fixed tool's own shape.
    pub(crate) fn value(value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => Self::Value(value),
            // our own types, with string keys only: it cannot happen, and if
            // it did the caller must not read it as success
            Err(error) => {
                tracing::error!(%error, "an answer could not be written as JSON");
                EngineError::SandboxUnavailable("the answer could not be written".into()).into()
            }
        }
    }
}

impl From<Envelope> for Reply {
    fn from(envelope: Envelope) -> Self {
        Self::Envelope(Box::new(envelope))
    }
}

impl From<EngineError> for Reply {
    fn from(error: EngineError) -> Self {
        Envelope::from(&error).into()
    }
}

impl From<Reply> for CallToolResult {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Value(value) => CallToolResult::structured(value),
            Reply::Envelope(envelope) => from_envelope(*envelope),
        }
    }
}

fn from_envelope(mut envelope: Envelope) -> CallToolResult {
    let content = envelope.content.take();
    let block = content.map(|content| block(content, envelope.run.as_deref()));
    let meta = envelope.times.take().and_then(|times| {
        let mut meta = MetaObject::new();
        meta.insert(TIMES.into(), serde_json::to_value(times).ok()?);
        Some(meta)
    });
    let is_error = envelope.is_error();
    let Reply::Value(value) = Reply::value(&envelope) else {
        return CallToolResult::error(vec![ContentBlock::text("the answer could not be written")]);
    };
    let mut result = match is_error {
        true => CallToolResult::structured_error(value),
        false => CallToolResult::structured(value),
    };
    result.content.extend(block);
    result.with_meta(meta)
}

/// Bytes that are not text travel beside the envelope, never inside it.
fn block(content: Content, run: Option<&str>) -> ContentBlock {
    let Content { mime_type, base64 } = content;
    match mime_type.split_once('/') {
        Some(("image", _)) => ContentBlock::image(base64, mime_type),
        Some(("audio", _)) => ContentBlock::audio(base64, mime_type),
        _ => {
            let uri = format!("result://{}", run.unwrap_or("unknown"));
            ContentBlock::resource(ResourceContents::blob(base64, uri).with_mime_type(mime_type))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn on_the_wire(reply: impl Into<Reply>) -> Value {
        serde_json::to_value(CallToolResult::from(reply.into())).unwrap()
    }

    #[test]
    fn the_text_is_the_structured_content_byte_for_byte() {
        let mut envelope = Envelope::of(Status::Ok);
        envelope.result = Some(json!({"b": 1, "a": ["é", 1.5, null]}));
        envelope.run = Some("r1".into());
        let wire = on_the_wire(envelope);
        let structured = serde_json::to_string(&wire["structuredContent"]).unwrap();
        assert_eq!(wire["content"][0]["text"], structured);
        assert_eq!(wire["isError"], false);
    }

    #[test]
    fn only_status_error_is_an_mcp_error() {
        for (status, is_error) in [
            (Status::Ok, false),
            (Status::Running, false),
            (Status::AwaitingApproval, false),
            (Status::AwaitingConnection, false),
            (Status::AwaitingCredential, false),
            (Status::DryRun, false),
            (Status::Error, true),
        ] {
            assert_eq!(on_the_wire(Envelope::of(status))["isError"], is_error, "{status:?}");
        }
    }

    #[test]
    fn b037_bytes_become_an_image_an_audio_or_a_resource_block() {
        for (mime, kind) in
            [("image/png", "image"), ("audio/wav", "audio"), ("application/pdf", "resource")]
        {
            let mut envelope = Envelope::of(Status::Ok);
            envelope.run = Some("r1".into());
            envelope.content = Some(Content { mime_type: mime.into(), base64: "AAAA".into() });
            let wire = on_the_wire(envelope);
            assert_eq!(wire["content"][0]["type"], "text");
            let block = &wire["content"][1];
            assert_eq!(block["type"], kind);
            if kind == "resource" {
                assert_eq!(block["resource"]["uri"], "result://r1");
                assert_eq!(block["resource"]["mimeType"], mime);
                assert_eq!(block["resource"]["blob"], "AAAA");
            } else {
                assert_eq!((&block["mimeType"], &block["data"]), (&json!(mime), &json!("AAAA")));
            }
            assert!(!wire["structuredContent"].to_string().contains("AAAA"));
        }
    }
}
