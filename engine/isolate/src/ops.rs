//! What the glue can ask of the worker: requests and their replies, console
//! lines, failures, randomness, a coarse clock, digests. No operation reaches
//! the system; requests only fill the run's [`Link`].

use crate::link::Link;
use crate::{digest, link};
use cambium_jail::frames::fetch::{FetchFault, RequestHead};
use deno_core::convert::Uint8Array;
use deno_core::{JsBuffer, OpState, ToV8, op2};
use std::cell::RefCell;
use std::rc::Rc;

/// A fault as the glue reads it.
#[derive(ToV8)]
pub(crate) struct Fault {
    code: String,
    message: String,
}

impl From<FetchFault> for Fault {
    fn from(fault: FetchFault) -> Self {
        Self { code: fault.code, message: fault.message }
    }
}

/// A reply's head: names and values alternate in `headers`.
#[derive(ToV8)]
pub(crate) struct Head {
    fault: Option<Fault>,
    status: u32,
    headers: Vec<String>,
    ended: bool,
}

/// Bytes of a reply; `null` at its end.
#[derive(ToV8)]
pub(crate) struct Piece {
    fault: Option<Fault>,
    bytes: Option<Uint8Array>,
}

fn link_of(state: &OpState) -> Rc<Link> {
    state.borrow::<Rc<Link>>().clone()
}

/// Queues one request and gives the number its reply goes by.
#[op2]
#[smi]
pub(crate) fn op_cambium_fetch(
    state: &mut OpState,
    #[string] method: String,
    #[string] host: Option<String>,
    #[string] target: String,
    sdk: bool,
    #[scoped] headers: Vec<String>,
    #[buffer] body: Option<JsBuffer>,
) -> u32 {
    let mut pairs = Vec::with_capacity(headers.len() / 2);
    let mut rest = headers.into_iter();
    while let (Some(name), Some(value)) = (rest.next(), rest.next()) {
        pairs.push((name, value));
    }
    // Copied: the module keeps its buffer and may change it.
    let body = body.map(|body| bytes::Bytes::copy_from_slice(&body)).unwrap_or_default();
    let head = RequestHead { method, host, target, headers: pairs, body: !body.is_empty(), sdk };
    link_of(state).request(head, body)
}

/// Waits for a reply's head.
#[op2]
pub(crate) async fn op_cambium_head(state: Rc<RefCell<OpState>>, #[smi] exchange: u32) -> Head {
    let link = link_of(&state.borrow());
    match link.head(exchange).await {
        Ok((head, ended)) => Head {
            fault: None,
            status: head.status.into(),
            headers: head.headers.into_iter().flat_map(|(name, value)| [name, value]).collect(),
            ended,
        },
        Err(fault) => {
            Head { fault: Some(fault.into()), status: 0, headers: Vec::new(), ended: true }
        }
    }
}

/// Waits for the next piece of a reply.
#[op2]
pub(crate) async fn op_cambium_chunk(state: Rc<RefCell<OpState>>, #[smi] exchange: u32) -> Piece {
    let link = link_of(&state.borrow());
    match link.chunk(exchange).await {
        Ok(chunk) => {
            Piece { fault: None, bytes: chunk.map(|chunk| Uint8Array::from(chunk.to_vec())) }
        }
        Err(fault) => Piece { fault: Some(fault.into()), bytes: None },
    }
}

/// Waits for the rest of a reply.
#[op2]
pub(crate) async fn op_cambium_read_all(
    state: Rc<RefCell<OpState>>,
    #[smi] exchange: u32,
) -> Piece {
    let link = link_of(&state.borrow());
    let mut whole = Vec::new();
    loop {
        match link.chunk(exchange).await {
            Ok(Some(chunk)) => whole.extend_from_slice(&chunk),
            Ok(None) => return Piece { fault: None, bytes: Some(Uint8Array::from(whole)) },
            Err(fault) => return Piece { fault: Some(fault.into()), bytes: None },
        }
    }
}

/// Gives an exchange up.
#[op2(fast)]
pub(crate) fn op_cambium_cancel(state: &mut OpState, #[smi] exchange: u32) {
    link_of(state).cancel(exchange);
}

/// One console line, and how many characters of it were cut.
#[op2(fast)]
pub(crate) fn op_cambium_log(state: &mut OpState, #[string] line: &str, cut: u32) {
    link_of(state).log(line, cut);
}

/// The run failed outside the tool's own promise; the first one counts.
#[op2(fast)]
pub(crate) fn op_cambium_failed(
    state: &mut OpState,
    #[string] message: &str,
    #[string] stack: &str,
) {
    link_of(state).fail(message, stack);
}

/// Milliseconds since the run began, whole: a finer clock tells a module about
/// its neighbours.
#[op2(fast)]
pub(crate) fn op_cambium_now(state: &mut OpState) -> f64 {
    let since = link_of(state).started().elapsed().as_millis();
    u32::try_from(since).map_or(f64::MAX, f64::from)
}

/// Fills a buffer with random bytes of this process's own.
#[op2(fast)]
pub(crate) fn op_cambium_random(#[buffer] buffer: &mut [u8]) {
    link::random(buffer);
}

/// 32 random hexadecimal digits.
#[op2]
#[string]
pub(crate) fn op_cambium_random_hex() -> String {
    let mut bytes = [0; 16];
    link::random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number from 0 up to, not including, 1.
#[op2(fast)]
pub(crate) fn op_cambium_random_unit() -> f64 {
    let mut bytes = [0; 8];
    link::random(&mut bytes);
    // 53 bits, as many as the number holds.
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
}

/// SHA-2.
#[op2]
pub(crate) fn op_cambium_digest(#[string] name: &str, #[buffer] data: &[u8]) -> Uint8Array {
    digest::digest(name, data).into()
}

/// HMAC over SHA-2.
#[op2]
pub(crate) fn op_cambium_hmac(
    #[string] name: &str,
    #[buffer] key: &[u8],
    #[buffer] data: &[u8],
) -> Uint8Array {
    digest::hmac(name, key, data).into()
}
