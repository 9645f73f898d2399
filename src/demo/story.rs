//! The demo's steps, each with what must be true after it.

use super::harness::{Answered, Harness};
use super::home::Home;
use super::vendor::{HOST, Received, Vendor};
use super::{Differs, Teller};
use crate::cli::{preview_text, visible};
use crate::paste;
use cambium_proxy::{Clock, SystemClock};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The read tool of `examples/`.
const LIST_ORDERS: &str = include_str!("../../examples/shop__list-orders.ts");
/// The write tool of `examples/`.
const CREATE_ORDER: &str = include_str!("../../examples/shop__create-order.ts");
/// A held call shows up as an ask within this.
const ASKED: Duration = Duration::from_secs(20);
/// Between two looks at the open asks.
const LOOK: Duration = Duration::from_millis(50);

/// One call and where its time went, microseconds.
struct Timed {
    what: &'static str,
    total_us: u64,
    times: Value,
}

/// Tells the whole story; answers its findings.
pub(crate) async fn tell(teller: &Teller, keep: bool) -> Result<Value, Differs> {
    let clock = SystemClock::default();
    let (secret, passphrase) = (random("shop-live-")?, random("demo ")?);
    teller.say("cambium demo: an agent lists and orders from a shop, through a jail and a proxy.");

    teller.step("1. A vendor and a server, both on this machine");
    let vendor = Vendor::open(&secret).await.map_err(|e| Differs::new("no demo vendor", e))?;
    teller.say(&format!(
        "shop     https://{HOST}:{} (own authority, bearer token)",
        vendor.address.port()
    ));
    let home = Home::make(&passphrase)?;
    home.run(&["setup", "--no-config"], "").await?;
    let server = home.serve().await?;
    teller.say(&format!("server   {} (data in {})", server.url, home.data_dir().display()));

    teller.step("2. A person connects the shop, an agent gets a token");
    let token = connect(&home, &vendor, &secret).await?;
    teller.say("connection shop: the token went by stdin straight into the vault");
    teller.say("agent demo: its own token, which opens nothing at the shop");

    teller.step("3. Two tools are published: the check reads them without running them");
    publish(teller, &home).await?;

    teller.step("4. A harness connects: MCP over HTTP");
    let harness = Harness::connect(&server.url, &token).await?;
    let names: Vec<String> =
        harness.tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect();
    teller.say(&format!("tools/list: {}", names.join(", ")));
    for wanted in
        ["find_tool", "run_tool", "publish_tool", "shop__list-orders", "shop__create-order"]
    {
        expect(names.iter().any(|name| name == wanted), "tools/list lacks a tool", wanted)?;
    }

    teller.step("5. The read tool runs; nobody is asked");
    let (read, mut timed) =
        timed(&clock, "read", harness.call("shop__list-orders", json!({ "limit": 5 }))).await?;
    teller.say(&visible(&read.envelope["result"].to_string()));
    expect(
        !read.is_error && read.envelope["status"] == "ok",
        "the read did not run",
        &read.envelope,
    )?;
    expect(
        read.envelope["result"][0]["item"] == "reading lamp",
        "the read's result",
        &read.envelope,
    )?;
    let mut calls = vec![timed];

    teller.step("6. The write tool under dry run: previewed, not sent");
    let order = json!({ "item": "walnut table", "quantity": 1 });
    let dry = json!({ "vendor": "shop", "name": "create-order", "input": order, "dryRun": true });
    let preview;
    (preview, timed) = self::timed(&clock, "dry run", harness.call("run_tool", dry)).await?;
    calls.push(timed);
    expect(preview.envelope["status"] == "dry_run", "the dry run's status", &preview.envelope)?;
    let stopped = &preview.envelope["preview"][0];
    teller.say(preview_text(stopped).trim_end());
    expect(stopped["request"]["method"] == "POST", "the preview", &preview.envelope)?;
    expect(posts(&vendor).is_empty(), "a dry run wrote", format!("{:?}", vendor.received()))?;

    teller.step("7. The write tool for real: held at the proxy until the person answers");
    let (written, ask) = {
        let held = self::timed(&clock, "write", harness.call("shop__create-order", order.clone()));
        tokio::pin!(held);
        let ask = tokio::select! {
            ask = open_ask(&home) => ask?,
            early = &mut held => {
                let envelope = early?.0.envelope;
                return Err(Differs::new("the write was not held", envelope));
            }
        };
        let what = format!(
            "{} https://{}{}",
            text(&ask, "method"),
            text(&ask, "authority"),
            text(&ask, "target")
        );
        teller.say(&format!(
            "held     {what}\nbody     {}",
            visible(ask["body"].as_str().unwrap_or_default())
        ));
        expect(
            posts(&vendor).is_empty(),
            "a held write was sent",
            format!("{:?}", vendor.received()),
        )?;
        let id = text(&ask, "id");
        let decided = home.run(&["approvals", "allow", &id, "--from-now-on"], "").await?;
        teller.say(&format!(
            "allowed  by the person, with their passphrase: {}",
            text(&decided, "state").replace('_', " ")
        ));
        let (written, timed) = held.await?;
        calls.push(timed);
        (written, ask)
    };
    teller.say(&format!("answer   {}", visible(&written.envelope.to_string())));
    expect(
        !written.is_error && written.envelope["status"] == "ok",
        "the write did not run",
        &written.envelope,
    )?;
    expect(written.envelope["vendor"]["status"] == 201, "the vendor's status", &written.envelope)?;

    teller.step("8. What the shop received");
    let received = vendor.received();
    for request in &received {
        teller.say(&shown(request, &secret));
    }
    let sent = posts(&vendor);
    expect(sent.len() == 1, "the shop did not get exactly one POST", format!("{received:?}"))?;
    let bearer = format!("Bearer {secret}");
    expect(
        received.iter().all(|request| request.authorization.as_deref() == Some(&bearer)),
        "a request came without the credential",
        format!("{} requests", received.len()),
    )?;
    expect(
        ask["body"].as_str() == sent.first().map(|request| request.body.as_str()),
        "what was sent is not what the person saw",
        format!("{sent:?}"),
    )?;

    teller.step("9. The credential: used twice, seen by nobody");
    expect(
        !all(&[&read, &preview, &written]).contains(&secret),
        "the credential came through",
        "an answer",
    )?;
    expect(
        written.envelope["result"]["youSent"].is_string(),
        "the shop's echo of the credential did not come back redacted",
        &written.envelope,
    )?;
    let files = holding(&home.data_dir(), secret.as_bytes())?;
    expect(files.is_empty(), "the credential is in a file in the clear", files.join(", "))?;
    expect(!home.log().contains(&secret), "the credential is in the log", "server.log")?;
    teller.say(&format!(
        "the shop echoed it; the module read {}",
        written.envelope["result"]["youSent"]
    ));
    teller.say("it is in no answer, no log and no file but the vault's sealed value");

    teller.step("10. The audit trail");
    let rows = home.run(&["audit", "list"], "").await?;
    let kinds = trail(teller, &rows);
    for kind in ["intent", "outcome", "preview", "hold"] {
        expect(kinds.iter().any(|found| found == kind), "the audit lacks a row", kind)?;
    }
    let verified = home.run(&["audit", "verify"], "").await?;
    teller.say(&format!("{} rows, the chain holds", verified["rows"]));

    teller.step("11. Where the time of each call went");
    teller.say("call       total      worker     proxy      vendor     (milliseconds; a person's time apart)");
    for call in &calls {
        teller.say(&call.line());
    }
    let notices = harness.notices();
    let url = server.url.clone();
    if keep {
        let path = home.write("agent-token", &token)?;
        teller.step("The server stays: connect a harness (Ctrl-C ends it)");
        teller.say(&format!("export CAMBIUM_TOKEN=$(cat {})\n", path.display()));
        teller.say(&paste::lines(&url));
        let _ = tokio::signal::ctrl_c().await;
    }
    harness.close().await;
    server.stop().await?;
    vendor.close().await;
    if !keep {
        teller.step("Connect your own harness");
        teller
            .say("Start `cambium serve`, make a token with `cambium agents create NAME`, then:\n");
        teller.say(&paste::lines("http://127.0.0.1:7171"));
    }
    teller.say("every step went as said");
    Ok(json!({
        "ok": true,
        "posts": sent.len(),
        "auditRows": verified["rows"],
        "listNotices": notices,
        "calls": calls.iter().map(Timed::json).collect::<Vec<_>>(),
    }))
}

async fn connect(home: &Home, vendor: &Vendor, secret: &str) -> Result<String, Differs> {
    let ca = home.write("shop-ca.pem", &vendor.ca_pem)?;
    let ca = ca.to_string_lossy();
    let port = vendor.address.port();
    let host = format!("{HOST}:{port}");
    let (four, six) = (format!("127.0.0.1/32:{port}"), format!("::1/128:{port}"));
    let add = [
        "connections",
        "add",
        "shop",
        "--display-name",
        "The demo shop",
        "--host",
        &host,
        "--ca",
        &ca,
        "--allow-private",
        &four,
        "--allow-private",
        &six,
    ];
    home.run(&add, secret).await?;
    let agent = home.run(&["agents", "create", "demo"], "").await?;
    let token = text(&agent, "token");
    expect(!token.is_empty(), "no agent token", &agent)?;
    Ok(token)
}

async fn publish(teller: &Teller, home: &Home) -> Result<(), Differs> {
    for (name, source, reads) in
        [("list-orders", LIST_ORDERS, true), ("create-order", CREATE_ORDER, false)]
    {
        let file = home.write(&format!("shop__{name}.ts"), source)?;
        let file = file.to_string_lossy();
        let publish = ["publish", &file, "--vendor", "shop", "--name", name, "--agent", "demo"];
        let done = home.run(&publish, "").await?;
        let effect = if reads { "reads" } else { "writes: a person is asked" };
        teller.say(&format!("shop__{name} version {}: {effect}", done["version"]));
        expect(done["readOnlyHint"] == reads, "the derived hint", &done)?;
        expect(done["promoted"] == true, "not promoted", &done)?;
    }
    Ok(())
}

/// The one open ask, once it is there.
async fn open_ask(home: &Home) -> Result<Value, Differs> {
    let looked = tokio::time::timeout(ASKED, async {
        loop {
            let asks = home.run(&["approvals", "list", "--open"], "").await?;
            if let Some(ask) = asks.get(0) {
                return Ok(ask.clone());
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    looked.await.unwrap_or_else(|_| Err(Differs::new("no ask was opened", format!("{ASKED:?}"))))
}

async fn timed(
    clock: &SystemClock,
    what: &'static str,
    call: impl Future<Output = Result<Answered, Differs>>,
) -> Result<(Answered, Timed), Differs> {
    let begun = clock.ticks_us();
    let answered = call.await?;
    let times = answered.times.clone();
    Ok((answered, Timed { what, total_us: clock.ticks_us().saturating_sub(begun), times }))
}

impl Timed {
    fn us(&self, name: &str) -> u64 {
        self.times[name].as_u64().unwrap_or(0)
    }

    /// Total without the time a person took; what is neither vendor nor proxy
    /// in the run is the worker's.
    fn spent(&self) -> [u64; 4] {
        let (vendor, proxy, held) = (self.us("vendorUs"), self.us("proxyUs"), self.us("heldUs"));
        let run = (self.us("takeUs") + self.us("runUs")).saturating_sub(held);
        let worker = run.saturating_sub(vendor).saturating_sub(proxy);
        [self.total_us.saturating_sub(held), worker, proxy, vendor]
    }

    fn line(&self) -> String {
        let cells = self
            .spent()
            .map(|us| format!("{:<11}", format!("{}.{:02}", us / 1000, us % 1000 / 10)));
        let held = self.us("heldUs");
        let apart = if held > 0 { format!("(held {} ms)", held / 1000) } else { String::new() };
        format!("{:<11}{}{apart}", self.what, cells.concat()).trim_end().to_owned()
    }

    fn json(&self) -> Value {
        let [total, worker, proxy, vendor] = self.spent();
        json!({ "call": self.what, "totalUs": total, "workerUs": worker, "proxyUs": proxy,
            "vendorUs": vendor, "heldUs": self.us("heldUs") })
    }
}

/// Prints the rows; answers their kinds.
fn trail(teller: &Teller, rows: &Value) -> Vec<String> {
    let mut kinds = Vec::new();
    for row in rows.as_array().into_iter().flatten() {
        let event = &row["event"];
        let kind = text(event, "kind");
        let status = event["status"].as_u64().map_or_else(String::new, |status| status.to_string());
        teller.say(&format!(
            "{:>3} {:<8} {:<19} {:<5}{:<28} {:<4} {}",
            row["sequence"].to_string(),
            kind,
            text(event, "tool"),
            text(event, "method"),
            text(event, "host") + &text(event, "path"),
            status,
            text(event, "rule"),
        ));
        kinds.push(kind);
    }
    kinds
}

fn shown(request: &Received, secret: &str) -> String {
    let credential = match &request.authorization {
        Some(header) => visible(header).replace(secret, "<the shop's token>"),
        None => "none".into(),
    };
    let body = if request.body.is_empty() {
        String::new()
    } else {
        format!("  {}", visible(&request.body))
    };
    format!(
        "{} {}  authorization: {credential}{body}  -> {}",
        visible(&request.method),
        visible(&request.target),
        request.status
    )
}

fn posts(vendor: &Vendor) -> Vec<Received> {
    vendor.received().into_iter().filter(|request| request.method != "GET").collect()
}

fn all(answers: &[&Answered]) -> String {
    answers.iter().map(|answer| answer.envelope.to_string()).collect()
}

/// Files below `folder` that hold `needle`.
fn holding(folder: &Path, needle: &[u8]) -> Result<Vec<String>, Differs> {
    let unread = |error| Differs::new("the data directory cannot be read", error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        // Sockets cannot be opened; a file of SQLite may have just gone.
        if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(needle.len()).any(|window| window == needle)
        {
            found.push(path.display().to_string());
        }
    }
    Ok(found)
}

fn expect(holds: bool, what: &str, got: impl std::fmt::Display) -> Result<(), Differs> {
    if holds { Ok(()) } else { Err(Differs::new(what, got)) }
}

fn text(value: &Value, name: &str) -> String {
    visible(value[name].as_str().unwrap_or_default())
}

fn random(before: &str) -> Result<String, Differs> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Differs::new("no randomness", error))?;
    Ok(bytes.iter().fold(before.to_owned(), |text, byte| format!("{text}{byte:02x}")))
}
