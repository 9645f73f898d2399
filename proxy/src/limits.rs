//! Every limit of the proxy, with its unit and its reason.

use std::time::Duration;

/// Limits of one session and its requests. `Default` is what the docs promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest path, bytes. The http crate fails only at 64 KiB.
    pub path_bytes: usize,
    /// Longest query, bytes.
    pub query_bytes: usize,
    /// Most request headers a module may set.
    pub header_count: usize,
    /// Their total, bytes.
    pub header_bytes: usize,
    /// Largest request body, bytes.
    pub request_body_bytes: usize,
    /// Largest request body a person can be asked about, bytes.
    pub approval_body_bytes: usize,
    /// Largest response body after decoding, bytes.
    pub response_bytes: usize,
    /// Largest ratio of decoded to received bytes.
    pub decode_ratio: usize,
    /// Whole exchange with a vendor, hold time excluded.
    pub exchange: Duration,
    /// Until the response head is complete, 1xx included.
    pub head: Duration,
    /// Between two pieces of a response body.
    pub idle: Duration,
    /// Requests in one run.
    pub requests: usize,
    /// Requests of one run at the same time.
    pub concurrent: usize,
    /// Requests of one connection at the same time, over all runs, unless a
    /// person set another number.
    pub connection_concurrent: usize,
    /// One DNS look-up.
    pub dns: Duration,
    /// Addresses taken from one look-up.
    pub addresses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            path_bytes: 8 * 1024,
            query_bytes: 16 * 1024,
            header_count: 64,
            header_bytes: 16 * 1024,
            request_body_bytes: 10 * 1024 * 1024,
            approval_body_bytes: 1024 * 1024,
            response_bytes: 10 * 1024 * 1024,
            decode_ratio: 100,
            exchange: Duration::from_secs(30),
            head: Duration::from_secs(15),
            idle: Duration::from_secs(30),
            requests: 16,
            concurrent: 8,
            connection_concurrent: 64,
            dns: Duration::from_secs(5),
            addresses: 16,
        }
    }
}
