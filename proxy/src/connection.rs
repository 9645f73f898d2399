//! A connection as the proxy sees it, and the ports that read connections and
//! sealed secrets. Only a person makes or changes one.

use crate::{AgentId, BoxFuture, ConnectionId, Overrides, PersonId, Scheme, StoreFault};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A vendor host of a connection. The first of a connection is its primary.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// What `init.host` may say to select it; defaults to `name`.
    pub label: String,
    /// Lower-case ASCII (punycode) name, no trailing dot.
    pub name: String,
    /// TLS port, 443 unless a person said otherwise.
    pub port: u16,
}

/// A person's word that one private range may be dialled for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The addresses.
    pub cidr: IpNet,
    /// The one port.
    pub port: u16,
}

/// Whether a connection can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionStatus {
    /// Confirmed and its secret entered.
    Connected,
    /// Confirmed, and a person has yet to sign in at the vendor's.
    Pending,
    /// A person took it back.
    Revoked,
}

/// One connection, as read in one piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id.
    pub id: ConnectionId,
    /// Whose it is.
    pub person: PersonId,
    /// The name a person sees and an agent may use for the id.
    pub slug: String,
    /// The vendor half of its tools' names.
    pub vendor: String,
    /// What a person calls it.
    pub display_name: String,
    /// At least one; the first is primary.
    pub hosts: Vec<Host>,
    /// How the credential is placed.
    pub scheme: Scheme,
    /// Private ranges a person allowed.
    pub exceptions: Vec<Exception>,
    /// PEM of the certificate authority that replaces the public roots.
    pub ca_pem: Option<String>,
    /// What a person changed of the policy for it.
    pub overrides: Overrides,
    /// Rises with every change of hosts, scheme, exceptions, CA, overrides or secret.
    pub generation: u64,
    /// Whether it can be used.
    pub status: ConnectionStatus,
}

/// Reads connections. `store` implements it.
pub trait ConnectionSource: Send + Sync {
    /// The connection as it stands now, revoked ones included.
    fn connection<'a>(
        &'a self,
        id: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<Connection>, StoreFault>>;
    /// Whether it is for this agent now.
    fn is_for<'a>(
        &'a self,
        id: &'a ConnectionId,
        agent: &'a AgentId,
    ) -> BoxFuture<'a, Result<bool, StoreFault>>;
}

/// A secret as the database holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// Whose.
    pub connection: ConnectionId,
    /// The connection generation it was sealed for.
    pub generation: u64,
    /// The data key, wrapped by the master key.
    pub wrapped_key: Vec<u8>,
    /// Nonce and ciphertext.
    pub sealed: Vec<u8>,
}

/// Keeps sealed secrets. `store` implements it; it never sees one opened.
pub trait SecretStore: Send + Sync {
    /// The sealed secret of a connection, if one was entered.
    fn secret<'a>(
        &'a self,
        connection: &'a ConnectionId,
    ) -> BoxFuture<'a, Result<Option<SealedSecret>, StoreFault>>;
    /// Stores or replaces it.
    fn put_secret<'a>(&'a self, secret: &'a SealedSecret) -> BoxFuture<'a, Result<(), StoreFault>>;
    /// All of them.
    fn secrets(&self) -> BoxFuture<'_, Result<Vec<SealedSecret>, StoreFault>>;
    /// Replaces exactly `old` by `new`, durably; [`StoreFault::Conflict`] when
    /// something else is stored, and nothing is changed then.
    fn replace_secret<'a>(
        &'a self,
        old: &'a SealedSecret,
        new: &'a SealedSecret,
    ) -> BoxFuture<'a, Result<(), StoreFault>>;
}
