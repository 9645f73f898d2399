//! The tools, prompts and resources the conformance suites name. What each must
//! answer stands in the suites' own descriptions.
#![allow(deprecated)]

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A header and no sound.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";
/// Between two messages of one tool, as the suites ask.
const PAUSE: Duration = Duration::from_millis(50);

/// Changes of the tool list, which a tool of its own pretends.
static CHANGES: LazyLock<watch::Sender<u64>> = LazyLock::new(|| watch::channel(0).0);

#[derive(Default)]
pub(crate) struct Fixtures {
    /// Made before the subscription is acknowledged, so that nothing is missed.
    early: Mutex<Option<watch::Receiver<u64>>>,
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A result; the library leaves the type out again where a client is older.
fn result<T: DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    typed(value)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tools() -> Vec<(&'static str, Value)> {
    let none = json!({"type": "object", "properties": {}});
    let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    vec![
        ("test_simple_text", none.clone()),
        ("test_image_content", none.clone()),
        ("test_audio_content", none.clone()),
        ("test_embedded_resource", none.clone()),
        ("test_multiple_content_types", none.clone()),
        ("test_tool_with_logging", none.clone()),
        ("test_error_handling", none.clone()),
        ("test_tool_with_progress", none.clone()),
        ("test_sampling", one("prompt")),
        ("test_elicitation", one("message")),
        ("test_elicitation_sep1034_defaults", none.clone()),
        ("test_elicitation_sep1330_enums", none.clone()),
        ("test_missing_capability", none.clone()),
        ("test_streaming_elicitation", none.clone()),
        ("test_logging_tool", none.clone()),
        ("test_trigger_tool_change", none.clone()),
        ("test_input_required_result_elicitation", none.clone()),
        ("test_input_required_result_sampling", none.clone()),
        ("test_input_required_result_list_roots", none.clone()),
        ("test_input_required_result_request_state", none.clone()),
        ("test_input_required_result_tampered_state", none.clone()),
        ("test_input_required_result_multiple_inputs", none.clone()),
        ("test_input_required_result_multi_round", none.clone()),
        ("test_input_required_result_capabilities", none),
    ]
}

/// What a tool answers that only answers.
fn plain(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            )
        ]),
        "test_error_handling" => {
            let said = "This tool intentionally returns an error for testing";
            return Some(json!({"isError": true, "content": [text(said)]}));
        }
        _ => return None,
    };
    Some(json!({ "content": content }))
}

/// The form of a tool that asks.
fn form(name: &str, arguments: &JsonObject) -> Option<Value> {
    let options = |pairs: &[(&str, &str)]| {
        let option = |(value, title): &(&str, &str)| json!({"const": value, "title": title});
        pairs.iter().map(option).collect::<Vec<_>>()
    };
    let (message, properties, required) = match name {
        "test_elicitation" => (
            arguments.get("message").and_then(Value::as_str).unwrap_or_default(),
            json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            }),
            json!(["username", "email"]),
        ),
        "test_elicitation_sep1034_defaults" => (
            "Please accept the defaults",
            json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            }),
            json!([]),
        ),
        "test_elicitation_sep1330_enums" => (
            "Please choose",
            json!({
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": options(&[
                    ("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"),
                ])},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
                },
                "titledMulti": {"type": "array", "items": {"anyOf": options(&[
                    ("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice"),
                ])}},
            }),
            json!([]),
        ),
        _ => return None,
    };
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Some(json!({"mode": "form", "message": message, "requestedSchema": schema}))
}

/// A form with one text that must be filled in.
fn asked(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampled(text: &str, tokens: u32) -> Value {
    let content = json!({"type": "text", "text": text});
    let messages = json!([{"role": "user", "content": content}]);
    json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}})
}

/// What a round of a tool or prompt needs, and the state it hands out. A state
/// that was not handed out is refused: that is all the integrity one needs that
/// means nothing.
fn needed(name: &str, state: Option<&str>) -> Option<(Value, Option<&'static str>)> {
    let roots = json!({"method": "roots/list", "params": {}});
    Some(match (name, state) {
        ("test_input_required_result_elicitation" | "test_streaming_elicitation", _) => {
            (json!({"user_name": asked("What is your name?", "name", "string")}), None)
        }
        ("test_input_required_result_sampling", _) => {
            (json!({"capital_question": sampled("What is the capital of France?", 100)}), None)
        }
        ("test_input_required_result_list_roots", _) => (json!({"client_roots": roots}), None),
        ("test_input_required_result_request_state", _) => {
            (json!({"confirm": asked("Please confirm", "ok", "boolean")}), Some("state-1"))
        }
        ("test_input_required_result_tampered_state", _) => {
            (json!({"confirm": asked("Please confirm", "ok", "boolean")}), Some("state-2"))
        }
        ("test_input_required_result_multiple_inputs", _) => (
            json!({
                "user_name": asked("What is your name?", "name", "string"),
                "greeting": sampled("Generate a greeting", 50),
                "client_roots": roots,
            }),
            Some("state-3"),
        ),
        ("test_input_required_result_multi_round", Some("round-1" | "round-2")) => (
            json!({"step2": asked("Step 2: What is your favorite color?", "color", "string")}),
            Some("round-2"),
        ),
        ("test_input_required_result_multi_round", _) => (
            json!({"step1": asked("Step 1: What is your name?", "name", "string")}),
            Some("round-1"),
        ),
        ("test_input_required_result_capabilities", _) => {
            (json!({"capital_question": sampled("What is the capital of France?", 100)}), None)
        }
        ("test_input_required_result_prompt", _) => (
            json!({"user_context": asked("What context should the prompt use?", "context", "string")}),
            None,
        ),
        _ => return None,
    })
}

/// What is still needed; `None` when everything is there.
fn open_inputs(
    name: &str,
    state: Option<&str>,
    given: Option<&InputResponses>,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let Some((inputs, handed)) = needed(name, state) else { return Ok(None) };
    let known = [handed, Some("round-1")];
    if state.is_some_and(|state| !known.contains(&Some(state))) {
        return Err(ErrorData::invalid_params("requestState does not hold", None));
    }
    let keys: Vec<&String> = inputs.as_object().unwrap().keys().collect();
    let there = given
        .is_some_and(|given| keys.iter().all(|key| given.get(*key).is_some_and(Value::is_object)));
    // the second question comes after the first one's answer
    if there && state == handed {
        return Ok(None);
    }
    Ok(Some(InputRequiredResult::new(Some(typed(inputs)), handed.map(str::to_owned))))
}

impl Fixtures {
    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        if let Some(answer) = plain(name) {
            return Ok(answer);
        }
        let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
        if let Some(form) = form(name, &arguments) {
            let asked = context.peer.create_elicitation(typed(form)).await.map_err(failed)?;
            let action = serde_json::to_value(&asked.action).unwrap();
            let content = asked.content.unwrap_or_default();
            let said = match name {
                "test_elicitation" => {
                    format!("User response: action: {action}, content: {content}")
                }
                _ => format!("Elicitation completed: action={action}, content={content}"),
            };
            return Ok(json!({ "content": [text(&said)] }));
        }
        match name {
            "test_tool_with_logging" => {
                for said in
                    ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    let message = json!({"level": "info", "data": said});
                    context.peer.notify_logging_message(typed(message)).await.map_err(failed)?;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            "test_trigger_tool_change" => CHANGES.send_modify(|change| *change += 1),
            // the newer era: only a request that asked for messages gets them
            "test_logging_tool" => {
                if context.meta.get("io.modelcontextprotocol/logLevel").is_some() {
                    let message = json!({"level": "info", "data": "logged"});
                    context.peer.notify_logging_message(typed(message)).await.map_err(failed)?;
                }
            }
            "test_tool_with_progress" => {
                for progress in [0.0, 50.0, 100.0] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let said =
                            ProgressNotificationParam::new(token, progress).with_total(100.0);
                        context.peer.notify_progress(said).await.map_err(failed)?;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
            "test_sampling" => {
                let params = json!({
                    "messages": [{"role": "user", "content": {"type": "text", "text": arguments["prompt"]}}],
                    "maxTokens": 100,
                });
                let sampled = context.peer.create_message(typed(params)).await.map_err(failed)?;
                let sampled = serde_json::to_value(&sampled).unwrap();
                let said = sampled["content"]["text"].as_str().unwrap_or_default();
                return Ok(json!({ "content": [text(&format!("LLM response: {said}"))] }));
            }
            "test_missing_capability" => {
                let sampling = context.client_capabilities().is_some_and(|c| c.sampling.is_some());
                if !sampling {
                    let wanted = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(wanted));
                }
            }
            _ => return Err(ErrorData::invalid_params("no such tool", None)),
        }
        Ok(json!({ "content": [text("done")] }))
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cambium-fixtures", "0"))
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        *self.early.lock().unwrap() = Some(CHANGES.subscribe());
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let early = self.early.lock().unwrap().take();
        let mut changes = early.unwrap_or_else(|| CHANGES.subscribe());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |(name, schema): (&'static str, Value)| {
            let schema = schema.as_object().cloned().unwrap();
            Tool::new(name, format!("The fixture {name}."), Arc::new(schema))
        };
        Ok(ListToolsResult::with_all_items(tools().into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = request.request_state.as_deref();
        let given = request.input_responses.as_ref();
        if let Some(open) = open_inputs(&request.name, state, given)? {
            return Ok(open.into());
        }
        if needed(&request.name, None).is_some() {
            let given = serde_json::to_value(given).unwrap();
            let name = given["user_name"]["content"]["name"].as_str().unwrap_or_default();
            let said = format!("Hello, {name}! state-ok {given}");
            return Ok(result::<CallToolResult>(json!({ "content": [text(&said)] })).into());
        }
        let arguments = request.arguments.unwrap_or_default();
        let answer = self.call(&request.name, arguments, &context).await?;
        Ok(result::<CallToolResult>(answer).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let of = |name: &str, mime: &str| json!({"uri": format!("test://{name}"), "name": name, "description": name, "mimeType": mime});
        Ok(result(json!({ "resources": [
            of("static-text", "text/plain"),
            of("static-binary", "image/png"),
            of("watched-resource", "text/plain"),
        ]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(result(json!({ "resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "Data by id", "mimeType": "application/json",
        }]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri, id) {
            ("test://static-text", _) => json!({
                "mimeType": "text/plain", "text": "This is the content of the static text resource.",
            }),
            ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": PNG}),
            ("test://watched-resource", _) => json!({"mimeType": "text/plain", "text": "watched"}),
            (_, Some(id)) => {
                let data =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"mimeType": "application/json", "text": data.to_string()})
            }
            _ => {
                return Err(ErrorData::invalid_params(
                    "Resource not found",
                    Some(json!({"uri": uri})),
                ));
            }
        };
        let mut content = content;
        content["uri"] = json!(uri);
        Ok(result::<ReadResourceResult>(json!({ "contents": [content] })).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let of = |name: &str, arguments: &[&str]| {
            let argument =
                |name: &&str| json!({"name": name, "description": name, "required": true});
            let arguments: Vec<_> = arguments.iter().map(argument).collect();
            json!({"name": name, "description": name, "arguments": arguments})
        };
        Ok(result(json!({ "prompts": [
            of("test_simple_prompt", &[]),
            of("test_prompt_with_arguments", &["arg1", "arg2"]),
            of("test_prompt_with_embedded_resource", &["resourceUri"]),
            of("test_prompt_with_image", &[]),
            of("test_input_required_result_prompt", &[]),
        ]})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let state = request.request_state.as_deref();
        if let Some(open) = open_inputs(&request.name, state, request.input_responses.as_ref())? {
            return Ok(open.into());
        }
        let arguments = request.arguments.unwrap_or_default();
        let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let user = |content: Value| json!({"role": "user", "content": content});
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([user(text("This is a simple prompt for testing."))]),
            "test_prompt_with_arguments" => json!([user(text(&format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                given("arg1"),
                given("arg2")
            )))]),
            "test_prompt_with_embedded_resource" => json!([
                user(json!({"type": "resource", "resource": {
                    "uri": given("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                }})),
                user(text("Please process the embedded resource above.")),
            ]),
            "test_input_required_result_prompt" => json!([user(text("With your context."))]),
            "test_prompt_with_image" => json!([
                user(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
                user(text("Please analyze the image above.")),
            ]),
            _ => return Err(ErrorData::invalid_params("no such prompt", None)),
        };
        Ok(result::<GetPromptResult>(json!({ "messages": messages })).into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(result(
            json!({"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": false}}),
        ))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}
