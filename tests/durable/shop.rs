//! A home with a running server, a shop behind a connection, and an agent with a
//! tool that reads and one that writes.

use crate::support::{Ended, Home, Server};
use crate::vendor::Vendor;
use serde_json::Value;
use tokio::runtime::Runtime;

pub(crate) const TOKEN: &str = "shop-token";
const READ: &str = include_str!("../../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../../examples/shop__create-order.ts");

pub(crate) struct Shop {
    pub(crate) home: Home,
    pub(crate) vendor: Vendor,
    /// The agent's token.
    pub(crate) agent: String,
    pub(crate) server: Option<Server>,
    _runtime: Runtime,
}

impl Shop {
    /// A call waits one second for a person.
    pub(crate) fn open() -> Self {
        Self::waiting(1)
    }

    pub(crate) fn waiting(seconds: u32) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let vendor = runtime.block_on(Vendor::open(TOKEN)).unwrap();
        let home = Home::new();
        home.write("config.toml", &format!("wait_budget_seconds = {seconds}\n"));
        let server = home.set_up();
        connect(&home, &vendor, "shop");
        let agent =
            home.run(&["agents", "create", "laptop"]).ok()["token"].as_str().unwrap().to_owned();
        for (name, source) in [("list-orders", READ), ("create-order", WRITE)] {
            let file = home.write(&format!("{name}.ts"), source);
            let file = file.to_str().unwrap();
            home.run(&["publish", file, "--vendor", "shop", "--name", name, "--agent", "laptop"])
                .ok();
        }
        Self { home, vendor, agent, server: Some(server), _runtime: runtime }
    }

    pub(crate) fn stop(&mut self) {
        assert_eq!(self.server.take().unwrap().stop(), 0);
    }

    pub(crate) fn start(&mut self) {
        self.server = Some(self.home.serve());
    }

    /// Reads the orders as the agent.
    pub(crate) fn read(&self) -> Ended {
        self.home.run_as(&self.agent, &["run", "shop", "list-orders"])
    }

    /// Orders an item as the agent.
    pub(crate) fn order(&self, item: &str) -> Ended {
        let input = format!(r#"{{"item": "{item}", "quantity": 1}}"#);
        self.home.run_as(&self.agent, &["run", "shop", "create-order", "--input", &input])
    }

    /// The one open ask.
    pub(crate) fn open_ask(&self) -> String {
        let asks = self.home.run(&["approvals", "list", "--open"]).ok();
        assert_eq!(asks.as_array().unwrap().len(), 1, "{asks}");
        asks[0]["id"].as_str().unwrap().to_owned()
    }

    /// Bodies of the orders the vendor received.
    pub(crate) fn orders(&self) -> Vec<Value> {
        let received = self.vendor.received().into_iter().filter(|r| r.method == "POST");
        received.map(|request| serde_json::from_str(&request.body).unwrap()).collect()
    }
}

/// Connects a home to the vendor under a slug; the vendor half is the same.
pub(crate) fn connect(home: &Home, vendor: &Vendor, slug: &str) {
    let ca = home.write("ca.pem", &vendor.ca_pem);
    let port = vendor.address.port();
    let (host, four) = (format!("localhost:{port}"), format!("127.0.0.1/32:{port}"));
    let six = format!("::1/128:{port}");
    let ca = ca.to_str().unwrap();
    let add = ["connections", "add", slug, "--host", &host, "--ca", ca, "--allow-private", &four];
    home.run_with(&[&add[..], &["--allow-private", &six]].concat(), TOKEN).ok();
}
