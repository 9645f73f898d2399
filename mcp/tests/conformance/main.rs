//! The protocol's conformance suites against our door, sessions and transport
//! with the tools, prompts and resources the suites look for: what the product's
//! own server cannot show, since it has none by those names. `scripts/clients`
//! installs the suites.
#![allow(clippy::unwrap_used)]

mod fixtures;
#[path = "../wire/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

use cambium_mcp::{DevAgent, HttpConfig, http_service_with};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use support::World;

fn clients() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("CAMBIUM_CACHE").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("cambium")
    });
    let clients = cache.join("clients");
    assert!(clients.join("ready").exists(), "{}: run scripts/clients", clients.display());
    clients
}

async fn conformance(package: &str, arguments: &[&str], expected: &str) {
    let world = World::new().await;
    let agent = world.agent("conformance").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = HttpConfig {
        hosts: vec![address.to_string()],
        origins: vec![format!("http://{address}")],
        dev_agent: Some(DevAgent { agent: agent.id, proof: world.proof.clone() }),
        cancel: world.cancel.clone(),
        tasks: world.tasks.clone(),
    };
    let router = http_service_with(world.engine.clone(), config, fixtures::Fixtures::default);
    let stop = world.cancel.clone();
    world.tasks.spawn(async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await });
        served.await.unwrap();
    });
    let clients = clients();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let results = std::env::temp_dir().join(format!("cambium-conformance-{}", address.port()));
    std::fs::create_dir_all(&results).unwrap();
    let output = tokio::process::Command::new(clients.join("node"))
        .arg(clients.join("node_modules").join(package).join("dist/index.js"))
        .args(["server", "--url", &format!("http://{address}/mcp")])
        .args(arguments)
        .arg("--expected-failures")
        .arg(tests.join(expected))
        .current_dir(&results)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let summary = out.rsplit_once("=== SUMMARY ===").map_or(&*out, |(_, summary)| summary);
    assert!(output.status.success(), "{summary}\n{err}");
    let _ = std::fs::remove_dir_all(&results);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_released_suite_passes_with_its_fixtures() {
    conformance("conformance-released", &["--suite", "active"], "none.yml").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2025_11_25_pass_with_their_fixtures() {
    conformance("conformance-next", &["--requirements", "2025-11-25"], "2025-11-25.yml").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requirements_of_2026_07_28_pass_with_their_fixtures() {
    conformance("conformance-next", &["--requirements", "2026-07-28"], "2026-07-28.yml").await;
}
