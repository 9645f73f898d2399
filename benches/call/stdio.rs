//! The call through MCP over stdio (P4). Ours is what a harness would start:
//! `cambium mcp` beside a running `cambium serve`, both processes of the built
//! binary. Theirs is one process, started the same way.

use crate::Client;
use crate::house::{TOKEN, TOOL};
use crate::peers::Peers;
use crate::support::{Home, Server, connect_shop_with};
use cambium_sandbox_tests::vendor::Vendor;
use rmcp::ServiceExt;
use std::process::{Command, Stdio};
use tokio::process::Child;

/// A client and the process it speaks to, killed when dropped.
pub(crate) struct Piped {
    /// For calls.
    pub(crate) client: Client,
    _child: Child,
    _server: Option<(Server, Home)>,
}

/// Our server, furnished with its own commands, and a bridge to it.
pub(crate) async fn ours(vendor: &Vendor) -> Piped {
    let (command, served) = tokio::task::block_in_place(|| {
        let home = Home::new();
        let server = home.set_up();
        connect_shop_with(&home, vendor.address.port(), &vendor.ca_pem, TOKEN);
        let agent = home.run(&["agents", "create", "bench"]).ok();
        let token = agent["token"].as_str().expect("a token");
        let tool = home.write("list-orders.ts", TOOL);
        let tool = tool.to_str().expect("a path");
        let publish =
            ["publish", tool, "--vendor", "shop", "--name", "list-orders", "--agent", "bench"];
        home.run(&publish).ok();
        let mut command = home.command(&["mcp"]);
        command.env("CAMBIUM_TOKEN", token);
        (command, (server, home))
    });
    piped(command, Some(served)).await
}

/// The plain MCP server.
pub(crate) async fn theirs(peers: &Peers) -> Piped {
    piped(peers.mcp_over_stdio(), None).await
}

async fn piped(mut command: Command, server: Option<(Server, Home)>) -> Piped {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let spawned = tokio::process::Command::from(command).kill_on_drop(true).spawn();
    let mut child = spawned.expect("the process starts");
    let stdin = child.stdin.take().expect("stdin is piped");
    let stdout = child.stdout.take().expect("stdout is piped");
    let client = ().serve((stdout, stdin)).await.expect("an MCP client");
    Piped { client, _child: child, _server: server }
}
