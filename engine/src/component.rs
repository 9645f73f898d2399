//! Tools that are WebAssembly components: a file and a manifest instead of a
//! module. No code is read, so the manifest's claim of methods and paths is what
//! the version is recorded to call, and what the proxy holds it to; without one
//! it is a write on any path. The file is kept by its digest.

use crate::check::{inlined, normalise_schema, schema_validator};
use crate::sdk::file_digest;
use crate::toolbox::content_hash;
use crate::{Engine, EngineError, Published, Publisher, ToolKind, ToolName, Unfit, Version};
use cambium_proxy::{CallSite, ContentHash, Hints, MethodPattern, PathPattern, StoreFault};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Largest component, bytes: one with a whole JavaScript engine in it has 12 MB.
pub const COMPONENT_BYTES: usize = 24 * 1024 * 1024;
/// Longest description, characters.
const DESCRIPTION: usize = 500;
/// Longest title, characters.
const TITLE: usize = 100;
/// Methods, paths and hosts, each, of one manifest.
const CLAIMS: usize = 32;
/// What they may make together.
const SITES: usize = 256;
/// Methods a manifest can claim.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What a component says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// One line in a client's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub input_schema: Value,
    /// What it gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// For dry runs and docs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_input: Option<Value>,
    /// The only methods it sends; absent means any but DELETE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// The only paths it asks for, as templates; absent means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Labels of the only hosts it asks; absent means the primary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}

impl Engine {
    /// Publishes a component as the next version of a tool.
    pub async fn publish_component(
        &self,
        publisher: &Publisher,
        tool: &ToolName,
        connection: Option<&str>,
        manifest: &str,
        component: &[u8],
    ) -> Result<Published, EngineError> {
        let (published_by, promote_for) = self.publishing(publisher).await?;
        reserved(tool)?;
        if component.is_empty() || component.len() > COMPONENT_BYTES {
            let has = component.len();
            let reason = format!("it must have 1 to {COMPONENT_BYTES} bytes, not {has}");
            return Err(EngineError::ComponentRefused(reason));
        }
        let claims: Manifest =
            serde_json::from_str(manifest).map_err(|error| wrong("manifest", error.to_string()))?;
        let (sites, hints) = claims.sites()?;
        let connection = self.bound(tool, connection, published_by.as_ref()).await?;
        let known = |label: &&String| !connection.hosts.iter().any(|host| host.label == **label);
        if let Some(label) = claims.hosts.iter().flatten().find(known) {
            let shown: String = label.chars().take(64).collect();
            let reason = format!("`{}` is no host of the connection", shown.escape_debug());
            return Err(wrong("hosts", reason));
        }
        let digest = file_digest(component);
        self.parts.sandbox.prepare(digest, component).await.map_err(unfit)?;
        let mut version = Version {
            person: self.person.clone(),
            tool: tool.clone(),
            number: 0,
            hash: ContentHash([0; 32]),
            kind: ToolKind::Component,
            title: claims.title,
            description: claims.description,
            input_schema: claims.input_schema,
            output_schema: claims.output_schema,
            example_input: claims.example_input,
            source: manifest.to_owned(),
            javascript: String::new(),
            sdks: Vec::new(),
            component: Some(digest),
            hints,
            sites,
            connection: connection.id.clone(),
            published_by,
            published_ms: self.now(),
        };
        version.hash = content_hash(&version);
        self.parts.store.put_file(&self.person, &digest, component, self.now()).await?;
        self.store_component(version, &connection, promote_for.as_ref()).await
    }

    /// The file a version runs, compared with what it was published as.
    pub(crate) async fn component(
        &self,
        version: &Version,
    ) -> Result<Option<(ContentHash, Arc<[u8]>)>, EngineError> {
        let Some(digest) = version.component else { return Ok(None) };
        let bytes = self.parts.store.file(&self.person, &digest).await?.unwrap_or_default();
        if file_digest(&bytes) != digest {
            tracing::error!(tool = %version.tool, "a component is not what was published");
            return Err(StoreFault::Corrupt(format!("the component of `{}`", version.tool)).into());
        }
        Ok(Some((digest, bytes.into())))
    }
}

impl Manifest {
    /// The claim as call sites, and what follows from it.
    fn sites(&self) -> Result<(Vec<CallSite>, Hints), EngineError> {
        let length = self.description.chars().count();
        if self.description.trim().is_empty() || length > DESCRIPTION {
            return Err(wrong("description", format!("must have 1 to {DESCRIPTION} characters")));
        }
        let schema = normalise_schema(&self.input_schema);
        let schema = schema.and_then(|plain| schema_validator(&plain));
        let schema = schema.map_err(|fault| wrong("inputSchema", fault.message))?;
        if let Some(output) = &self.output_schema {
            let validator = inlined(output).and_then(|plain| schema_validator(&plain));
            validator.map_err(|fault| wrong("outputSchema", fault.message))?;
        }
        let titled = |title: &String| !title.trim().is_empty() && title.chars().count() <= TITLE;
        if !self.title.iter().all(titled) {
            return Err(wrong("title", format!("must have 1 to {TITLE} characters")));
        }
        if let Some(example) = &self.example_input
            && let Err(fault) = schema.validate(example)
        {
            return Err(wrong("exampleInput", fault.to_string()));
        }
        let methods = match &self.methods {
            None => vec![MethodPattern::Any],
            Some(list) => claimed("methods", list, |method| METHODS.contains(&method))?
                .into_iter()
                .map(MethodPattern::Exactly)
                .collect(),
        };
        let paths = match &self.paths {
            None => vec![PathPattern::Any],
            Some(list) => claimed("paths", list, is_template)?
                .into_iter()
                .map(PathPattern::Template)
                .collect(),
        };
        let named = |method: &MethodPattern, names: &[&str]| matches!(method, MethodPattern::Exactly(name) if names.contains(&name.as_str()));
        let hints = Hints {
            read_only: methods.iter().all(|method| named(method, &["GET", "HEAD"])),
            destructive: methods.iter().any(|method| named(method, &["DELETE"])),
        };
        let hosts = match &self.hosts {
            None => vec![None],
            Some(list) => claimed("hosts", list, |label| !label.is_empty() && label.len() <= 64)?
                .into_iter()
                .map(Some)
                .collect(),
        };
        let mut sites = Vec::new();
        for (method, path) in methods.iter().flat_map(|one| paths.iter().map(move |two| (one, two)))
        {
            sites.extend(hosts.iter().map(|host| CallSite {
                method: method.clone(),
                host: host.clone(),
                path: path.clone(),
            }));
        }
        if sites.len() > SITES {
            return Err(wrong(
                "methods",
                format!("with paths and hosts makes over {SITES} claims"),
            ));
        }
        Ok((sites, hints))
    }
}

/// A path as a call site has it: segments of plain text with `{}` for a value.
fn is_template(path: &str) -> bool {
    let plain = |b: u8| (0x21..0x7f).contains(&b) && !b"?#\\%*".contains(&b);
    let dots = path.split('/').any(|segment| matches!(segment, "." | ".."));
    let holes = path.replace("{}", "");
    path.starts_with('/')
        && !path.contains("//")
        && !dots
        && path.bytes().all(plain)
        && !holes.contains(['{', '}'])
        && !path.contains("{}{}")
        && path.len() <= 512
}

fn claimed(
    name: &str,
    list: &[String],
    right: impl Fn(&str) -> bool,
) -> Result<Vec<String>, EngineError> {
    if list.is_empty() || list.len() > CLAIMS {
        return Err(wrong(name, format!("must be 1 to {CLAIMS}, or left out for any")));
    }
    match list.iter().find(|one| !right(one)) {
        Some(one) => {
            let shown: String = one.chars().take(64).collect();
            Err(wrong(name, format!("`{}` cannot be claimed", shown.escape_debug())))
        }
        None => Ok(list.to_vec()),
    }
}

fn reserved(tool: &ToolName) -> Result<(), EngineError> {
    if tool.vendor() == "execute" {
        return Err(EngineError::NameInvalid {
            name: tool.to_string(),
            rule: "the vendor `execute` is reserved",
        });
    }
    Ok(())
}

fn unfit(unfit: Unfit) -> EngineError {
    match unfit {
        Unfit::Refused(reason) => EngineError::ComponentRefused(reason),
        Unfit::Unavailable(reason) => EngineError::ComponentsUnavailable(reason),
    }
}

fn wrong(name: &str, reason: String) -> EngineError {
    EngineError::ArgumentInvalid { name: name.to_owned(), reason }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(more: Value) -> Result<(Vec<CallSite>, Hints), EngineError> {
        let mut whole = json!({ "description": "d", "inputSchema": { "type": "object" } });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<Manifest>(whole)
            .map_err(|error| wrong("manifest", error.to_string()))?
            .sites()
    }

    #[test]
    fn a_claim_is_what_the_version_is_held_to_and_none_is_any_write() {
        let (sites, hints) = manifest(json!({})).unwrap();
        let any = CallSite { method: MethodPattern::Any, host: None, path: PathPattern::Any };
        assert_eq!((sites, hints.read_only, hints.destructive), (vec![any], false, false));
        let (sites, hints) =
            manifest(json!({ "methods": ["GET", "HEAD"], "paths": ["/orders", "/orders/{}"] }))
                .unwrap();
        assert_eq!((sites.len(), hints.read_only), (4, true));
        let (sites, _) =
            manifest(json!({ "methods": ["GET"], "hosts": ["api", "files"] })).unwrap();
        let hosts: Vec<_> = sites.iter().map(|site| site.host.as_deref()).collect();
        assert_eq!(hosts, [Some("api"), Some("files")]);
        let (_, hints) = manifest(json!({ "methods": ["GET", "DELETE"] })).unwrap();
        assert!(!hints.read_only && hints.destructive);
        for bad in [
            json!({ "methods": [] }),
            json!({ "methods": ["get"] }),
            json!({ "methods": ["TRACE"] }),
            json!({ "paths": ["orders"] }),
            json!({ "paths": ["/a/../b"] }),
            json!({ "paths": ["//evil.test/"] }),
            json!({ "paths": ["/a?b=c"] }),
            json!({ "paths": ["/a%2fb"] }),
            json!({ "paths": ["/{id}"] }),
            json!({ "paths": ["/*"] }),
            json!({ "description": " " }),
            json!({ "inputSchema": { "type": "string" } }),
            json!({ "inputSchema": { "type": "object", "required": ["a"] }, "exampleInput": {} }),
            json!({ "hints": { "readOnly": true } }),
            json!({ "title": " " }),
            json!({ "hosts": [] }),
            json!({ "outputSchema": { "type": "nothing" } }),
        ] {
            assert_eq!(manifest(bad.clone()).unwrap_err().code(), "argument_invalid", "{bad}");
        }
    }
}
