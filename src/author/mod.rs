//! The model that writes tools for acquire, where a person configured one: an
//! OpenAI-compatible endpoint or Anthropic's. What it is told and what becomes of
//! its answers is `engine`'s; here are the two wire formats and the key, which
//! is read from its file for each question and shown to nobody.

use crate::config::{AuthorConfig, AuthorKind};
use crate::failure::Failure;
use crate::post::{Endpoint, Reach, read_key};
use cambium_engine::{Author, Said, Turn};
use cambium_proxy::BoxFuture;
use http::HeaderValue;
use serde_json::{Value, json};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Longest answer asked of a model, tokens: a module of a few hundred lines.
const ANSWER_TOKENS: u64 = 8_000;
/// The version of Anthropic's interface that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Characters a token has about, for an endpoint that does not count.
const CHARS_PER_TOKEN: u64 = 4;

/// A configured endpoint.
pub(crate) struct ModelAuthor {
    endpoint: Endpoint,
    kind: AuthorKind,
    model: String,
    key_file: Option<PathBuf>,
}

impl ModelAuthor {
    /// Refuses a URL that cannot be asked and a key file that others can read.
    pub(crate) fn new(config: &AuthorConfig) -> Result<Self, Failure> {
        let path = match config.kind {
            AuthorKind::Openai => "/chat/completions",
            AuthorKind::Anthropic => "/v1/messages",
        };
        let endpoint = Endpoint::new("author.url", &config.url, path, config.timeout, Reach::Any)?;
        if let Some(file) = &config.key_file {
            read_key(file).map_err(|reason| {
                Failure::new("config_invalid", reason, "name a file with the key, of mode 0600")
            })?;
        }
        Ok(Self {
            endpoint,
            kind: config.kind,
            model: config.model.clone(),
            key_file: config.key_file.clone(),
        })
    }

    fn body(&self, system: &str, turns: &[Turn]) -> Value {
        let said = turns.iter().map(|turn| {
            let role = if turn.by_model { "assistant" } else { "user" };
            json!({ "role": role, "content": turn.text })
        });
        match self.kind {
            AuthorKind::Openai => {
                let system = json!({ "role": "system", "content": system });
                let messages: Vec<Value> = std::iter::once(system).chain(said).collect();
                json!({ "model": self.model, "messages": messages })
            }
            AuthorKind::Anthropic => json!({
                "model": self.model,
                "max_tokens": ANSWER_TOKENS,
                "system": system,
                "messages": said.collect::<Vec<Value>>(),
            }),
        }
    }

    fn headers(&self) -> Result<Vec<(&'static str, HeaderValue)>, String> {
        let mut headers = Vec::new();
        if let Some(file) = &self.key_file {
            let key = read_key(file)?;
            let (name, text) = match self.kind {
                AuthorKind::Openai => ("authorization", Zeroizing::new(format!("Bearer {}", *key))),
                AuthorKind::Anthropic => ("x-api-key", key),
            };
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| "the key holds characters no header may hold".to_owned())?;
            value.set_sensitive(true);
            headers.push((name, value));
        }
        if self.kind == AuthorKind::Anthropic {
            headers.push(("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION)));
        }
        Ok(headers)
    }

    fn said(&self, answer: &Value) -> Option<(String, Option<u64>)> {
        let usage = &answer["usage"];
        match self.kind {
            AuthorKind::Openai => {
                let text = answer["choices"][0]["message"]["content"].as_str()?.to_owned();
                Some((text, usage["total_tokens"].as_u64()))
            }
            AuthorKind::Anthropic => {
                let blocks = answer["content"].as_array()?;
                let text: String =
                    blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                let counted = |name: &str| usage[name].as_u64();
                let tokens = counted("input_tokens").zip(counted("output_tokens"));
                Some((text, tokens.map(|(asked, said)| asked.saturating_add(said))))
            }
        }
    }
}

impl Author for ModelAuthor {
    fn ask<'a>(
        &'a self,
        system: &'a str,
        turns: &'a [Turn],
    ) -> BoxFuture<'a, Result<Said, String>> {
        Box::pin(async move {
            let body = self.body(system, turns).to_string();
            let asked = body.chars().count() as u64;
            let (status, answer) = self.endpoint.post(self.headers()?, body.into_bytes()).await?;
            // What stands in an error's body is the endpoint's; it may repeat the key.
            match status {
                200 => {}
                401 | 403 => return Err(format!("the endpoint refused the key ({status})")),
                status => return Err(format!("the endpoint answered {status}")),
            }
            let answer: Value = serde_json::from_slice(&answer)
                .map_err(|_| "the endpoint's answer is not JSON".to_owned())?;
            let (text, tokens) =
                self.said(&answer).ok_or("the endpoint's answer holds no text".to_owned())?;
            let counted = (asked + text.chars().count() as u64) / CHARS_PER_TOKEN;
            Ok(Said { tokens: tokens.unwrap_or(counted), text })
        })
    }
}
