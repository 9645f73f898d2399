//! Makes one file of an npm package: fetched by the machine's own npm into a
//! folder that goes away, no script of it run, then bundled by esbuild in the
//! jail, which sees the packages and nothing else. Whether tools may import it
//! is the server's to store and a person's to say.

use crate::checker::refused;
use crate::failure::Failure;
use cambium_engine::{NewSdk, SDK_BYTES};
use cambium_jail::{Jail, JailConfig, Program, ProgramError, ProgramLimits, Shown};
use cambium_proxy::{is_exact_version, is_package_name};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The bundler, exactly: package, version and SHA-256 of its program.
const BUNDLER: [(&str, &str, &str); 2] = [
    (
        "x86_64",
        "@esbuild/linux-x64",
        "e1698a3d5c6c0798fee4fd3b5cc816651f460c63d390a7a26ea4beb0b1884100",
    ),
    (
        "aarch64",
        "@esbuild/linux-arm64",
        "90bd269553d258e80b19e3ccab4f98f0831f87442a2f056510ce24fd1b425fc2",
    ),
];
const BUNDLER_VERSION: &str = "0.28.2";
/// A package with what it needs, over a slow line.
const FETCH: Duration = Duration::from_secs(180);
/// Stripe's takes a tenth of a second.
const BUNDLE: Duration = Duration::from_secs(30);
/// What the bundler is told: one module without imports for a runtime that is
/// neither a browser nor Node, with the builds packages ship for workers.
const SWITCHES: &str = "--bundle --format=esm --platform=neutral --target=es2022 --charset=utf8 \
    --conditions=worker,browser --main-fields=browser,module,main --legal-comments=none \
    --minify-whitespace --minify-syntax --log-level=error --log-limit=3 \
    --define:process.env.NODE_ENV=\"production\"";

/// A package and its version, as a person names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Named {
    /// Reads `NAME@VERSION`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let parts = text
            .rsplit_once('@')
            .filter(|(name, version)| is_package_name(name) && is_exact_version(version));
        let (name, version) = parts.ok_or_else(|| {
            let wanted = "PACKAGE@VERSION with an exact version, like stripe@23.1.0";
            Failure::new(
                "argument_invalid",
                format!("`{text}` is not {wanted}"),
                format!("write it as {wanted}"),
            )
        })?;
        Ok(Self { name: name.to_owned(), version: version.to_owned() })
    }
}

/// Makes the file; from packages that are in `folder` already, or fetched.
pub(crate) async fn make(named: &Named, folder: Option<&Path>) -> Result<NewSdk, Failure> {
    let (_, bundler, digest) = *BUNDLER
        .iter()
        .find(|(architecture, ..)| *architecture == std::env::consts::ARCH)
        .ok_or_else(|| {
            Failure::new(
                "sdk_unbundlable",
                format!("there is no bundler for {}", std::env::consts::ARCH),
                "add the SDK from a machine with x86-64 or aarch64",
            )
        })?;
    let fetched = match folder {
        Some(_) => None,
        None => Some(Fetched::get(named, bundler).await?),
    };
    let folder = folder.or(fetched.as_ref().map(|fetched| fetched.path.as_path()));
    let packages = folder.unwrap_or(Path::new(".")).join("node_modules");
    let packages = std::path::absolute(&packages).unwrap_or(packages);
    let integrity = installed(&packages, named)?;
    let program = packages.join(bundler).join("bin/esbuild");
    let bytes = std::fs::read(&program).map_err(|error| {
        Failure::new(
            "sdk_unbundlable",
            format!("{} cannot be read: {error}", program.display()),
            format!("install {bundler}@{BUNDLER_VERSION} beside the package"),
        )
    })?;
    if format!("{:x}", Sha256::digest(&bytes)) != digest {
        return Err(Failure::new(
            "sdk_unbundlable",
            format!("{} is not the bundler of {BUNDLER_VERSION}", program.display()),
            format!("install {bundler}@{BUNDLER_VERSION} beside the package"),
        ));
    }
    let bundle = bundled(named, packages, program).await?;
    let Named { name, version } = named.clone();
    Ok(NewSdk { name, version, integrity, bundle })
}

/// A folder with what npm fetched; it goes away with it.
struct Fetched {
    path: PathBuf,
}

impl Drop for Fetched {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Fetched {
    async fn get(named: &Named, bundler: &str) -> Result<Self, Failure> {
        let unmade = |error: std::io::Error| {
            Failure::new(
                "file_unwritable",
                format!("no folder can be made for the package: {error}"),
                "make the temporary directory writable (TMPDIR)",
            )
        };
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| unmade(std::io::Error::other(error.to_string())))?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("cambium-sdk-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(unmade)?;
        let fetched = Self { path };
        let wanted = json!({
            "private": true,
            "dependencies": { named.name.as_str(): named.version, bundler: BUNDLER_VERSION },
        });
        let mut file = std::fs::File::create(fetched.path.join("package.json")).map_err(unmade)?;
        file.write_all(wanted.to_string().as_bytes()).map_err(unmade)?;
        fetched.install(named).await?;
        Ok(fetched)
    }

    async fn install(&self, named: &Named) -> Result<(), Failure> {
        let mut npm = tokio::process::Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"])
            .arg("--loglevel=error")
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        // A token or a passphrase is nothing for a foreign program.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CAMBIUM_") {
                npm.env_remove(name);
            }
        }
        let Named { name, version } = named;
        let failed = |why: String| {
            Failure::new(
                "sdk_unfetched",
                format!("npm did not fetch {name}@{version}: {why}"),
                "check the name, the version and the line to the registry, and try again",
            )
        };
        let ended = match tokio::time::timeout(FETCH, npm.output()).await {
            Err(_) => return Err(failed(format!("it took longer than {} s", FETCH.as_secs()))),
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
                return Err(Failure::new(
                    "npm_missing",
                    "npm is not on the PATH",
                    "install Node.js with npm, or fetch the package elsewhere and pass its folder \
                     with --from",
                ));
            }
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Ok(Ok(ended)) => ended,
        };
        if !ended.status.success() {
            return Err(failed(first_line(&ended.stderr)));
        }
        Ok(())
    }
}

/// The registry's digest of what is installed, from npm's own record.
fn installed(packages: &Path, named: &Named) -> Result<String, Failure> {
    let Named { name, version } = named;
    let record = packages.join(".package-lock.json");
    let absent = |why: String| {
        Failure::new(
            "sdk_unfetched",
            format!("{name}@{version} is not installed in {}: {why}", packages.display()),
            format!("run `npm install --ignore-scripts --save-exact {name}@{version}` there"),
        )
    };
    let text =
        std::fs::read(&record).map_err(|error| absent(format!("{}: {error}", record.display())))?;
    let record: Value = serde_json::from_slice(&text).map_err(|error| absent(error.to_string()))?;
    let entry = &record["packages"][format!("node_modules/{name}")];
    match (entry["version"].as_str(), entry["integrity"].as_str()) {
        (Some(found), Some(integrity)) if found == version => Ok(integrity.to_owned()),
        (Some(found), _) if found != version => Err(absent(format!("version {found} is there"))),
        (Some(_) | None, _) => Err(absent("npm has no record of it".to_owned())),
    }
}

/// Runs the bundler on what is untrusted text to it and to us.
async fn bundled(named: &Named, packages: PathBuf, program: PathBuf) -> Result<String, Failure> {
    let Named { name, version } = named;
    let exe = PathBuf::from("/esbuild");
    let entry = format!("import * as all from {name:?};\nexport default all;\n");
    let program = Program {
        arguments: std::iter::once("/in/entry.js")
            .chain(SWITCHES.split_whitespace())
            .map(str::to_owned)
            .collect(),
        shown: vec![
            Shown { from: packages, at: "/in/node_modules".into() },
            Shown { from: program, at: exe.clone() },
        ],
        files: vec![("/in/entry.js".into(), entry.into_bytes())],
        scratch: "/work".into(),
        limits: ProgramLimits { wall: BUNDLE, output_bytes: SDK_BYTES, ..ProgramLimits::default() },
        exe,
        ..Program::default()
    };
    // A bundler reads text: like the check, it may run where a layer is missing
    // for workers; its own profile needs them all.
    let config = JailConfig { zygote: false, allow_weak: true, pool: 0, ..JailConfig::default() };
    let jail = Jail::start(config).map_err(|error| refused(&error))?;
    let end = jail.program(&program, b"").await;
    jail.shutdown().await;
    let unbundled = |why: String| {
        Failure::new(
            "sdk_unbundlable",
            format!("{name}@{version} cannot be made one file: {why}"),
            "use a version of the package that needs nothing of Node, or call ctx.fetch instead",
        )
    };
    let end = match end {
        Ok(end) => end,
        Err(ProgramError::Output(most)) => {
            return Err(unbundled(format!("it has more than {most} bytes")));
        }
        Err(error @ (ProgramError::Jail(_) | ProgramError::Unavailable(_))) => {
            let next = "run `cambium doctor`";
            return Err(Failure::new("sandbox_unavailable", error.to_string(), next));
        }
        Err(error @ ProgramError::Timeout(_)) => return Err(unbundled(error.to_string())),
    };
    if end.code != 0 {
        return Err(unbundled(first_line(&end.stderr)));
    }
    String::from_utf8(end.stdout).map_err(|_| unbundled("it is not UTF-8".to_owned()))
}

/// The first line that says something, bounded.
fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_exact_version_is_taken() {
        let named = Named::parse("@octokit/core@7.0.8").ok();
        assert_eq!(
            named.map(|named| (named.name, named.version)),
            Some(("@octokit/core".into(), "7.0.8".into()))
        );
        for text in
            ["stripe", "stripe@latest", "stripe@^23.1.0", "@octokit/core", "../x@1.0.0", "stripe@"]
        {
            assert_eq!(
                Named::parse(text).map_err(|failure| failure.code),
                Err("argument_invalid".into()),
                "{text}"
            );
        }
    }
}
