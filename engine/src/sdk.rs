//! SDKs of a connection: a person lists a package with the one file it was
//! bundled into, and versions that import it run with exactly that file. What is
//! listed is part of the connection's policy; the file is kept by its digest and
//! compared at each use.

use crate::{ConnectionChange, Engine, EngineError, PersonProof, Version};
use cambium_proxy::{Connection, ConnectionId, ContentHash, Sdk, StoreFault};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Largest bundle, bytes. Stripe's, one of the largest, has 0.7 MB.
pub const SDK_BYTES: usize = 2 * 1024 * 1024;
/// Bundles kept in memory: what a few busy connections import.
const KEPT: usize = 8;

/// A package as a person hands it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSdk {
    /// As it is imported.
    pub name: String,
    /// Exact.
    pub version: String,
    /// The registry's `sha512-…` of it.
    pub integrity: String,
    /// One JavaScript module without imports whose default export is the
    /// package's namespace.
    pub bundle: String,
}

/// The bundles of late, by digest.
#[derive(Default)]
pub(crate) struct Bundles {
    kept: Mutex<VecDeque<(ContentHash, Arc<str>)>>,
}

impl Bundles {
    fn get(&self, digest: ContentHash) -> Option<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| *known == digest).map(|(_, text)| text.clone())
    }

    fn put(&self, digest: ContentHash, text: Arc<str>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((digest, text));
    }
}

impl Engine {
    /// Lets tools of a connection import a package, in the place of another
    /// version of it. The connection gets a new generation.
    pub async fn add_sdk(
        &self,
        proof: &PersonProof,
        connection: &ConnectionId,
        new: NewSdk,
    ) -> Result<Connection, EngineError> {
        if new.bundle.is_empty() || new.bundle.len() > SDK_BYTES {
            return Err(EngineError::ArgumentInvalid {
                name: "bundle".into(),
                reason: format!(
                    "must have 1 to {SDK_BYTES} bytes; this one has {}",
                    new.bundle.len()
                ),
            });
        }
        let digest = file_digest(new.bundle.as_bytes());
        let sdk = Sdk { name: new.name, version: new.version, integrity: new.integrity, digest };
        let before = self.connection(connection.as_str()).await?;
        let mut overrides = before.overrides.clone();
        overrides.sdks.retain(|other| other.name != sdk.name);
        overrides.sdks.push(sdk);
        overrides.check().map_err(|fault| EngineError::ArgumentInvalid {
            name: fault.name.to_owned(),
            reason: fault.reason,
        })?;
        let bytes = new.bundle.as_bytes();
        self.parts.store.put_file(&self.person, &digest, bytes, self.now()).await?;
        let change = ConnectionChange { overrides: Some(overrides), ..ConnectionChange::default() };
        self.change_connection(proof, connection, change).await
    }

    /// Takes a package off the list: versions that import it are refused.
    pub async fn remove_sdk(
        &self,
        proof: &PersonProof,
        connection: &ConnectionId,
        name: &str,
    ) -> Result<Connection, EngineError> {
        let mut overrides = self.connection(connection.as_str()).await?.overrides;
        if !overrides.sdks.iter().any(|sdk| sdk.name == name) {
            return Err(EngineError::ArgumentInvalid {
                name: "package".into(),
                reason: format!("`{}` is not listed", name.chars().take(64).collect::<String>()),
            });
        }
        overrides.sdks.retain(|sdk| sdk.name != name);
        let change = ConnectionChange { overrides: Some(overrides), ..ConnectionChange::default() };
        self.change_connection(proof, connection, change).await
    }

    /// What a version imports, as its connection lists it now.
    pub(crate) async fn modules(
        &self,
        version: &Version,
        connection: &Connection,
    ) -> Result<Vec<(String, Arc<str>)>, EngineError> {
        let mut modules = Vec::with_capacity(version.sdks.len());
        for sdk in &version.sdks {
            if !connection.overrides.sdks.contains(sdk) {
                return Err(EngineError::SdkNotListed {
                    tool: version.tool.to_string(),
                    sdk: sdk.label(),
                });
            }
            modules.push((sdk.name.clone(), self.bundle(sdk).await?));
        }
        Ok(modules)
    }

    async fn bundle(&self, sdk: &Sdk) -> Result<Arc<str>, EngineError> {
        if let Some(text) = self.bundles.get(sdk.digest) {
            return Ok(text);
        }
        let bytes = self.parts.store.file(&self.person, &sdk.digest).await?.unwrap_or_default();
        let text =
            String::from_utf8(bytes).ok().filter(|text| file_digest(text.as_bytes()) == sdk.digest);
        let Some(text) = text else {
            tracing::error!(sdk = sdk.label(), "a bundle is not what was listed");
            let what = format!("the bundle of {}", sdk.label());
            return Err(StoreFault::Corrupt(what).into());
        };
        let text: Arc<str> = text.into();
        self.bundles.put(sdk.digest, text.clone());
        Ok(text)
    }
}

/// What a kept file goes by.
pub(crate) fn file_digest(bytes: &[u8]) -> ContentHash {
    ContentHash(Sha256::digest(bytes).into())
}
