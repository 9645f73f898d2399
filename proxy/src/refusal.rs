//! Every way the proxy says no, each with a stable code, whose fault it is,
//! what to do next and whether trying again can help. `docs/security.md`
//! lists them; the text never carries an address, a secret or a vendor's words.

/// Whose fault a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The module asked for what it may not.
    Tool,
    /// The vendor or the network misbehaved.
    Vendor,
    /// A person must act first.
    Person,
    /// We failed; nothing was sent.
    Us,
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $fault:ident, retry $retry:literal, $next:literal;)*) => {
        /// Why a request was not sent, or why its reply is not whole.
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        pub enum Refusal {
            $($(#[$doc])* #[error("{0}")] $name(String),)*
        }

        impl Refusal {
            /// Stable snake_case code.
            pub fn code(&self) -> &'static str {
                match self { $(Self::$name(_) => $code,)* }
            }
            /// Whose fault it is.
            pub fn fault(&self) -> Fault {
                match self { $(Self::$name(_) => Fault::$fault,)* }
            }
            /// Whether the same call can succeed later without a change.
            pub fn retryable(&self) -> bool {
                match self { $(Self::$name(_) => $retry,)* }
            }
            /// The next step for the agent.
            pub fn next(&self) -> &'static str {
                match self { $(Self::$name(_) => $next,)* }
            }
            /// Every code, in the order of the table, for the docs' test.
            pub const CODES: &'static [&'static str] = &[$($code),*];
        }
    };
}

refusals! {
    /// A request outside the version's recorded call sites.
    OutsideCallSites = "outside_call_sites", Tool, retry false, "publish a version whose code calls this method and path";
    /// The vault is locked.
    VaultLocked = "vault_locked", Person, retry true, "ask the person to unlock the vault, then call again";
    /// A path with a control character, a bad escape or a lone surrogate.
    PathInvalid = "path_invalid", Tool, retry false, "percent-encode each segment with encodeURIComponent";
    /// A path two parsers could read differently.
    PathAmbiguous = "path_ambiguous", Tool, retry false, "write the path without `//`, `\\`, dot segments or encoded slashes";
    /// An address of a page that is not one, or not one that is read.
    UrlInvalid = "url_invalid", Tool, retry false, "give an https address of a public host, without a user, as the page's own server spells it";
    /// A path that does not start with one `/`.
    PathNotRelative = "path_not_relative", Tool, retry false, "start the path with one `/`; the host is the connection's";
    /// Path or query over its limit.
    PathTooLong = "path_too_long", Tool, retry false, "send long values in a body";
    /// A host the connection does not list.
    HostNotInConnection = "host_not_in_connection", Tool, retry false, "use a host of the connection, or request a connection for this host";
    /// A method that is never sent.
    MethodInvalid = "method_invalid", Tool, retry false, "use GET, HEAD, POST, PUT, PATCH or DELETE in upper case";
    /// A method beyond what the version's hints allow.
    MethodExceedsHint = "method_exceeds_hint", Tool, retry false, "publish a version whose code uses this method as a literal";
    /// GET or HEAD with a body.
    BodyOnRead = "body_on_read", Tool, retry false, "send the values in the query, or use POST";
    /// A request body over the limit.
    BodyTooLarge = "body_too_large", Tool, retry false, "send a smaller body";
    /// A body too large to show a person.
    BodyTooLargeForApproval = "body_too_large_for_approval", Tool, retry false, "send at most 1 MiB in a request that needs approval";
    /// A body that calls itself text and is not, so no person can be shown it.
    BodyUnreadableForApproval = "body_unreadable_for_approval", Tool, retry false, "send text as UTF-8, or name the body's real content type";
    /// A header the module may not set, or one that is malformed.
    HeaderRefused = "header_refused", Tool, retry false, "leave the header out";
    /// The host resolves to an address that may not be dialled.
    AddressDenied = "address_denied", Person, retry false, "ask the person whether this connection may reach a private address";
    /// The host resolves to one of our own listeners.
    SelfAddress = "self_address", Tool, retry false, "use the vendor's own host";
    /// TLS could not be established.
    TlsFailed = "tls_failed", Vendor, retry true, "if it stays, tell the person: the vendor is reached by HTTPS only, and `cambium connections set SLUG --ca FILE` trusts an authority of its own";
    /// The vendor did not answer in time, or could not be reached. Nothing was
    /// done if the request was a read.
    UpstreamTimeout = "upstream_timeout", Vendor, retry true, "call again later";
    /// The vendor's answer ended early.
    UpstreamTruncated = "upstream_truncated", Vendor, retry true, "call again later";
    /// The vendor's answer was not well-formed HTTP.
    UpstreamProtocol = "upstream_protocol", Vendor, retry true, "call again later; if it stays, tell the person";
    /// The vendor's answer is over the limit.
    ResponseTooLarge = "response_too_large", Vendor, retry false, "ask the vendor for fewer fields or a smaller page";
    /// A write may have reached the vendor, its outcome is not known.
    OutcomeUnknown = "outcome_unknown", Vendor, retry false, "read the vendor's state before writing again";
    /// No credential could be placed.
    CredentialUnavailable = "credential_unavailable", Person, retry true, "call request_credential for this connection";
    /// A path where credentials are handed out.
    CredentialPath = "credential_path", Tool, retry false, "leave the token endpoint to the proxy; it gets the token itself";
    /// This machine's clock and the vendor's are too far apart for a signature.
    ClockSkew = "clock_skew", Person, retry true, "ask the person to set this machine's clock";
    /// The connection was revoked.
    ConnectionRevoked = "connection_revoked", Person, retry false, "ask the person to reconnect";
    /// The connection is not in the agent's scope.
    ConnectionNotInScope = "connection_not_in_scope", Person, retry false, "ask the person to add the connection to this agent";
    /// The run has ended.
    RunClosed = "run_closed", Tool, retry false, "await every fetch before returning";
    /// Too many requests in one run.
    RunRequestCap = "run_request_cap", Tool, retry false, "make one call per tool";
    /// A rate limit of the connection.
    RateLimited = "rate_limited", Tool, retry true, "wait, then call again";
    /// A person refused this tool.
    ToolDenied = "tool_denied", Person, retry false, "do not look for a way round; the person can change it in the console";
    /// A person was asked and has not answered.
    AwaitingApproval = "awaiting_approval", Person, retry true, "tell the person, then call again with the same input";
    /// A person put the question about this write aside.
    AskDismissed = "ask_dismissed", Person, retry false, "do not send this again unless the person says so; the tool itself is not refused";
    /// The ask expired.
    ApprovalExpired = "approval_expired", Person, retry true, "call again to ask anew";
    /// The proxy failed on this one request.
    ProxyFailed = "proxy_failed", Us, retry false, "tell the person; the server's log says where it failed";
    /// The audit row could not be written.
    AuditUnavailable = "audit_unavailable", Us, retry true, "call again later";
}
