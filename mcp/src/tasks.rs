//! Detached runs as MCP tasks, for clients that declare the tasks extension: the
//! task is the run, its identifier the run's. A write that waits for a person is
//! the task's `input_required`, where in-band answers are switched on; the form
//! and what its answer means are those of [`crate::asking`].

use crate::asking;
use crate::reply::Reply;
use cambium_engine::{Caller, Engine, EngineError, Envelope, Offer, Process, Status};
use chrono::{DateTime, SecondsFormat};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, DetailedTask, ElicitRequest, ElicitResult, InputRequest, InputResponses,
    JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a client had better look, milliseconds.
const POLL_MS: u64 = 1_000;
/// How long an answer can be had for: the longest run, its wait for a person,
/// and an hour, milliseconds. A restart or 256 later runs may end it sooner; the
/// task is then `failed` with `run_lost`.
const TTL_MS: u64 = 3 * 60 * 60 * 1000;
/// Forms shown at once; a node holds 64 requests.
const SHOWN_MAX: usize = 64;

/// The forms that tasks show, by task: a client that looks twice sees the same.
#[derive(Default)]
pub(crate) struct Shown(Mutex<HashMap<String, Offer>>);

impl Shown {
    fn offers(&self) -> MutexGuard<'_, HashMap<String, Offer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The form for what a run waits for, if it may be put to this client.
    async fn form(
        &self,
        engine: &Engine,
        caller: &Caller,
        task: &str,
        looked: &Process,
    ) -> Option<Offer> {
        let ask = looked.ask.as_ref()?;
        if let Some(offer) = self.offers().get(task).filter(|offer| offer.ask.id == *ask) {
            return Some(offer.clone());
        }
        let offered = engine.offer(caller, ask).await.unwrap_or_else(|error| {
            tracing::warn!(%ask, %error, "an ask could not be offered");
            None
        });
        let offer = offered?;
        let mut offers = self.offers();
        if offers.len() >= SHOWN_MAX {
            // Whose it was can still answer in the console.
            offers.clear();
        }
        offers.insert(task.to_owned(), offer.clone());
        Some(offer)
    }

    /// Takes the answers a client sent for a task. One that names no form shown
    /// means nothing.
    pub(crate) async fn answer(
        &self,
        engine: &Engine,
        caller: &Caller,
        task: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        engine.process(caller, task).await.map_err(|error| unknown(&error))?;
        let answered = |offer: &Offer| responses.get(&offer.id).cloned();
        let Some((offer, response)) = ({
            let mut offers = self.offers();
            let found =
                offers.get(task).and_then(|offer| Some((offer.id.clone(), answered(offer)?)));
            if found.is_some() {
                offers.remove(task);
            }
            found
        }) else {
            return Ok(());
        };
        let result: ElicitResult = serde_json::from_value(response)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        asking::answered(engine, caller, &offer, asking::meant(&result)).await;
        Ok(())
    }
}

/// The task of a run that was just begun.
pub(crate) async fn begun(
    engine: &Engine,
    caller: &Caller,
    run: &str,
) -> Result<Task, EngineError> {
    let looked = engine.process(caller, run).await?;
    Ok(task(run, &looked))
}

/// A task as it is now. `forms`: the client shows them.
pub(crate) async fn look(
    engine: &Engine,
    shown: &Shown,
    caller: &Caller,
    run: &str,
    forms: bool,
) -> Result<DetailedTask, ErrorData> {
    let looked = match engine.process(caller, run).await {
        Ok(looked) => looked,
        // It was a task, and its answer is gone.
        Err(error @ EngineError::RunFailed { .. }) => {
            let moment = time(0);
            let task = Task::new(run, TaskStatus::Failed, moment.clone(), moment);
            let error = json!({"code": -32_603, "message": error.to_string(), "data": Envelope::from(&error)});
            return Ok(DetailedTask::new(task, TaskPayload::Failed { error: object(error) }));
        }
        Err(error) => return Err(unknown(&error)),
    };
    let task = task(run, &looked);
    if looked.envelope.status != Status::Running {
        let cancelled = looked.envelope.code == Some("cancelled");
        let payload = match cancelled {
            true => TaskPayload::Cancelled,
            false => {
                let result = CallToolResult::from(Reply::from(looked.envelope));
                TaskPayload::Completed {
                    result: object(serde_json::to_value(result).unwrap_or_default()),
                }
            }
        };
        return Ok(DetailedTask::new(task, payload));
    }
    let offer = match forms {
        true => shown.form(engine, caller, run, &looked).await,
        false => None,
    };
    let payload = match offer {
        None => TaskPayload::Working,
        Some(offer) => {
            let request = InputRequest::Elicitation(ElicitRequest::new(asking::form(&offer)));
            TaskPayload::InputRequired { input_requests: [(offer.id, request)].into() }
        }
    };
    Ok(DetailedTask::new(task, payload))
}

/// A task nobody knows, or whose it is not.
pub(crate) fn unknown(error: &EngineError) -> ErrorData {
    let data = serde_json::to_value(Envelope::from(error)).ok();
    ErrorData::invalid_params(error.to_string(), data)
}

fn task(run: &str, looked: &Process) -> Task {
    let changed = looked.ended_ms.unwrap_or(looked.begun_ms);
    let task = Task::new(run, TaskStatus::Working, time(looked.begun_ms), time(changed))
        .with_ttl_ms(TTL_MS)
        .with_poll_interval_ms(POLL_MS);
    match &looked.envelope.message {
        Some(message) => task.with_status_message(message.clone()),
        None => task,
    }
}

fn time(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}
