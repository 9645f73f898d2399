//! Bad input on the command line: each ends with its code, its exit code and
//! nothing half-done.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Home, ended};

const READ: &str = include_str!("../examples/shop__list-orders.ts");
const WRITE: &str = include_str!("../examples/shop__create-order.ts");

#[test]
fn a_module_with_a_syntax_error_is_refused_with_its_place() {
    let home = Home::new();
    let file = home.write(
        "bad.ts",
        "export const description = \"x\";\nexport default async function (ctx, {\n",
    );
    let checked = home.run(&["check", file.to_str().unwrap()]);
    assert_eq!((checked.code, checked.error().as_str()), (1, "check_failed"), "{}", checked.stderr);
    let report: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert!(report["diagnostics"][0]["line"].as_u64().unwrap() >= 2, "{report}");
    assert!(!home.data_dir().exists(), "a check made a data directory");
}

#[test]
fn each_finding_is_told_once() {
    let home = Home::new();
    let bad = READ
        .replace("`/orders?limit=${input.limit ?? 20}`", "\"//a.example\"")
        .replace("if (!res.ok)", "await ctx.fetch(\"https://b.example/\");\n  if (!res.ok)");
    let file = home.write("bad.ts", &bad);
    let file = file.to_str().unwrap();
    let found = home.run(&["check", file]);
    let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let findings = report["diagnostics"].as_array().unwrap();
    assert!(findings.len() > 1, "{report}");
    let error: serde_json::Value = serde_json::from_str(&found.stderr).unwrap();
    assert_eq!(error["error"]["details"], report["diagnostics"], "a program reads them in both");

    let server = home.set_up();
    home.run_with(&["connections", "add", "shop", "--host", "api.shop.example"], "secret").ok();
    let publish = ["publish", file, "--vendor", "shop", "--name", "bad"];
    for arguments in [&["check", file][..], &["dev", file, "--once"], &publish] {
        let told = ended(home.plain(arguments).output().unwrap());
        assert_eq!((told.code, told.error().as_str()), (1, "check_failed"), "{}", told.stderr);
        let all = format!("{}{}", told.stdout, told.stderr);
        for finding in findings.iter().filter(|one| one["severity"] == "error") {
            let place = format!("{}:{}: ", finding["line"], finding["column"]);
            let message = finding["message"].as_str().unwrap();
            let times = all.matches(&format!("{place}{message}")).count();
            assert_eq!(times, 1, "{arguments:?} {place}{message}\n{all}");
        }
    }
    drop(server);
}

#[test]
fn a_host_in_a_path_is_refused() {
    let home = Home::new();
    let module =
        READ.replace("`/orders?limit=${input.limit ?? 20}`", "\"https://evil.example/orders\"");
    assert!(module.contains("evil.example"));
    let file = home.write("host.ts", &module);
    let checked = home.run(&["check", file.to_str().unwrap()]);
    assert_eq!((checked.code, checked.error().as_str()), (1, "check_failed"), "{}", checked.stderr);
    assert!(checked.stdout.contains("evil.example"), "{}", checked.stdout);
}

#[test]
fn a_good_module_passes_and_shows_what_it_calls() {
    let home = Home::new();
    for (module, read_only, method) in [(READ, true, "GET"), (WRITE, false, "POST")] {
        let file = home.write("good.ts", module);
        let report = home.run(&["check", file.to_str().unwrap()]).ok();
        assert_eq!(report["hints"]["readOnly"], read_only, "{report}");
        assert_eq!(report["sites"][0]["method"]["exactly"], method, "{report}");
        assert_eq!(report["sites"][0]["path"]["template"], "/orders", "{report}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let home = Home::new();
    let checked = home.run(&["check", "/nowhere/tool.ts"]);
    assert_eq!((checked.code, checked.error().as_str()), (1, "file_unreadable"));
    assert!(checked.stderr.contains("/nowhere/tool.ts"), "{}", checked.stderr);
}

#[test]
fn an_unknown_config_key_is_named() {
    let home = Home::new();
    for (text, key) in
        [("lisen = \"127.0.0.1:1\"\n", "lisen"), ("[sandbox]\npol = 2\n", "sandbox.pol")]
    {
        home.write("config.toml", text);
        let refused = home.run(&["tools", "list"]);
        assert_eq!((refused.code, refused.error().as_str()), (3, "config_unknown_key"));
        assert!(refused.stderr.contains(&format!("`{key}`")), "{}", refused.stderr);
    }
    home.write("config.toml", "");
    let refused = ended(home.command(&["status"]).env("CAMBIUM_LISEN", "x").output().unwrap());
    assert_eq!((refused.code, refused.error().as_str()), (3, "config_unknown_key"));
    assert!(refused.stderr.contains("lisen"), "{}", refused.stderr);
}

#[test]
fn a_config_value_that_is_not_valid_is_named() {
    let home = Home::new();
    for (text, code, exit, named) in [
        ("listen = \"here\"\n", "config_invalid", 3, "`here`"),
        ("listen = \"0.0.0.0:7171\"\n", "listen_refused", 7, "0.0.0.0"),
        ("wait_budget_seconds = 0\n", "config_invalid", 3, "wait_budget_seconds"),
        ("wait_budget_seconds = \"long\"\n", "config_invalid", 3, "wait_budget_seconds"),
        ("listen = \n", "config_invalid", 3, "config"),
    ] {
        home.write("config.toml", text);
        let refused = home.run(&["serve"]);
        assert_eq!((refused.code, refused.error().as_str()), (exit, code), "{}", refused.stderr);
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
        assert!(!home.data_dir().exists(), "a refused start made a data directory");
    }
    let refused =
        ended(home.bare().args(["--config", "/nowhere.toml", "status"]).output().unwrap());
    assert_eq!((refused.code, refused.error().as_str()), (3, "config_unreadable"));
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let home = Home::new();
    let file = home.write("file", "");
    let below = file.join("data");
    for path in ["/proc/cambium", file.to_str().unwrap(), below.to_str().unwrap()] {
        let started = home
            .bare()
            .args(["--json", "--data-dir", path, "serve", "--listen", "127.0.0.1:0"])
            .output();
        let refused = ended(started.unwrap());
        assert_eq!(
            (refused.code, refused.error().as_str()),
            (7, "data_dir_unwritable"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(path), "{}", refused.stderr);
    }
}

#[test]
fn a_data_directory_others_can_enter_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    std::fs::create_dir(home.data_dir()).unwrap();
    std::fs::set_permissions(home.data_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((refused.code, refused.error().as_str()), (7, "data_dir_open_to_others"));
    assert_eq!(std::fs::read_dir(home.data_dir()).unwrap().count(), 0, "something was made in it");
}

#[test]
fn a_port_in_use_is_named_and_nothing_is_made() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = home.run(&["serve", "--listen", &address]);
    assert_eq!((refused.code, refused.error().as_str()), (7, "listen_in_use"));
    assert!(refused.stderr.contains(&address), "{}", refused.stderr);
    assert!(!home.data_dir().exists(), "a refused start made a data directory");
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let home = Home::new();
    let first = home.set_up();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((refused.code, refused.error().as_str()), (7, "data_dir_locked"));
    let status = home.run(&["status"]).ok();
    assert_eq!(status["url"], first.url.as_str(), "the first one was disturbed");
    assert_eq!(first.stop(), 0);
    assert_eq!(home.run(&["status"]).code, 4);
}

#[test]
fn without_a_server_every_command_says_so() {
    let home = Home::new();
    for arguments in
        [&["tools", "list"][..], &["status"], &["agents", "list"], &["audit", "verify"]]
    {
        let refused = home.run(arguments);
        assert_eq!((refused.code, refused.error().as_str()), (4, "no_server"), "{arguments:?}");
    }
    let bridged = home.run_as("some-token", &["mcp"]);
    assert_eq!((bridged.code, bridged.error().as_str()), (4, "no_server"));
    assert_eq!(bridged.stdout, "", "the bridge spoke on the protocol's stdout");
    let bridged = home.run(&["mcp"]);
    assert_eq!((bridged.code, bridged.error().as_str()), (5, "token_missing"));
}

#[test]
fn a_command_line_that_is_wrong_ends_with_2() {
    let home = Home::new();
    assert_eq!(home.run(&["frobnicate"]).code, 2);
    assert_eq!(home.run(&["run", "shop"]).code, 2);
    // A secret has no argument to come in by.
    assert_eq!(home.run(&["connections", "add", "shop", "--host", "h", "--secret", "s"]).code, 2);
}

#[test]
fn errors_for_a_person_have_code_and_next_step() {
    let home = Home::new();
    let shown =
        ended(home.bare().arg("--data-dir").arg(home.data_dir()).arg("status").output().unwrap());
    assert_eq!(shown.code, 4);
    assert!(shown.stderr.starts_with("error[no_server]: "), "{}", shown.stderr);
    assert!(shown.stderr.contains("\nnext: start one with `cambium serve`"), "{}", shown.stderr);
    let help = ended(home.bare().arg("--help").output().unwrap());
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    let script = ended(home.bare().args(["completions", "bash"]).output().unwrap());
    assert!(script.stdout.contains("_cambium"), "{}", script.stdout);
}

#[test]
fn credentials_inputs_and_names_that_are_wrong_change_nothing() {
    let home = Home::new();
    let server = home.set_up();
    let add = ["connections", "add", "shop", "--host", "api.shop.example"];
    home.run_with(&add, "secret").ok();
    let token = home.run(&["agents", "create", "one"]).ok()["token"].as_str().unwrap().to_owned();
    let file = home.write("read.ts", READ);
    let publish = ["publish", file.to_str().unwrap(), "--vendor", "shop", "--name", "list-orders"];
    let published = home.run(&publish).ok();
    assert_eq!(published["promoted"], false, "a person's publish promoted without --agent");

    let cases: [(&[&str], &str, i32); 9] = [
        (&["run", "shop", "list-orders", "--input", r#"{"limit": 0}"#], "input_invalid", 1),
        (&["run", "shop", "list-orders", "--input", r#"{"limt": 1}"#], "input_invalid", 1),
        (&["run", "shop", "list-orders", "--input", "{"], "input_invalid", 1),
        (&["run", "shop", "nothing"], "tool_not_found", 1),
        (&["run", "Shop", "list-orders"], "name_invalid", 1),
        (&["tools", "source", "shop", "nothing"], "tool_not_found", 1),
        (&["approvals", "show", "00"], "ask_not_found", 1),
        (&["agents", "show", "nobody"], "agent_not_found", 1),
        (&["agents", "set", "one", "--cap", "501"], "out_of_range", 1),
    ];
    for (arguments, code, exit) in cases {
        let refused = home.run_as(&token, arguments);
        assert_eq!(
            (refused.code, refused.error().as_str()),
            (exit, code),
            "{arguments:?} {}",
            refused.stderr
        );
    }
    let missed = home.run_as(&token, &["run", "shop", "list-orders", "--input", r#"{"limit": 0}"#]);
    assert!(missed.stderr.contains("/limit"), "the failing path is not named: {}", missed.stderr);

    // The agent is told one sentence; what was seen of the process is a person's.
    let hoards = home.write(
        "hoards.ts",
        "export const description = \"Hoards.\";\n\
         export const inputSchema = { type: \"object\", properties: {}, additionalProperties: false } as const;\n\
         export default async function (ctx, input) {\n  const all = [];\n\
         for (;;) all.push(new Array(1e5).fill(0));\n  return await ctx.fetch(\"/orders\");\n}\n",
    );
    home.run(&["publish", hoards.to_str().unwrap(), "--vendor", "shop", "--name", "hoards"]).ok();
    let ended = home.run_as(&token, &["run", "shop", "hoards"]);
    assert_eq!((ended.code, ended.error().as_str()), (1, "memory_limit"), "{}", ended.stderr);
    let runs = home.run(&["runs", "list", "--limit", "1"]).ok();
    let (row, seen) = (&runs[0], &runs[0]["evidence"]);
    assert_eq!((&row["tool"], &row["outcome"]), (&"shop__hoards".into(), &"memory_limit".into()));
    assert_eq!((&seen["first"], &seen["endedBy"]), (&"gone".into(), &"itself".into()), "{seen}");
    assert!(seen["maxRss"].as_u64() > Some(16 << 20) && seen["cpuMs"].is_u64(), "{seen}");
    let shown = home.run(&["runs", "show", row["run"].as_str().unwrap()]).ok();
    assert_eq!(&shown, row);
    assert_eq!(home.run(&["runs", "show", "00"]).error(), "run_not_found");

    for token in ["", "wrong", &format!("{token}0")] {
        let refused = home.run_as(token, &["run", "shop", "list-orders"]);
        assert_eq!(refused.code, 5, "{}", refused.stderr);
    }
    home.write("passphrase", "wrong horse battery");
    for arguments in [
        &["agents", "create", "two"][..],
        &["agents", "rotate", "one"],
        &["approvals", "allow", "00", "--once"],
    ] {
        let refused = home.run(arguments);
        assert_eq!(
            (refused.code, refused.error().as_str()),
            (5, "person_required"),
            "{arguments:?}"
        );
    }
    let bad = home.write("bad.ts", "export default 1");
    let refused =
        home.run(&["publish", bad.to_str().unwrap(), "--vendor", "shop", "--name", "bad"]);
    assert_eq!((refused.code, refused.error().as_str()), (1, "check_failed"));
    assert_eq!(home.run(&["tools", "list"]).ok().as_array().unwrap().len(), 2);
    assert_eq!(home.run(&["agents", "list"]).ok().as_array().unwrap().len(), 1);
    assert_eq!(home.run(&add).error(), "secret_missing", "an empty secret was taken");
    assert_eq!(server.stop(), 0);
    // The directory is this test's again: the chain can be walked without a server.
    home.run(&["audit", "verify"]).ok();
}

#[test]
fn a_scheme_that_cannot_be_used_is_refused_with_its_field() {
    let home = Home::new();
    for (scheme, field, named) in [
        ("api-key-header", "prefix=x", "`header`"),
        ("api_key_header", "header=Host", "header"),
        ("bearer", "header=x-key", "`header`"),
        ("basic", "username=a:b", "username"),
        ("url-path", "template=/bot", "template"),
        ("cookie", "name", "FIELD=VALUE"),
        ("oauth2-client-credentials", "token_url=http://id.shop.example/token", "token_url"),
        ("oauth2_client_credentials", "token_url=https://id.shop.example/token", "`client_id`"),
        ("jwt-assertion", "lifetime_seconds=ten", "ten"),
        ("hmac", "message={query}", "`headers`"),
    ] {
        let add = ["connections", "add", "shop", "--host", "api.shop.example", "--scheme", scheme];
        let refused = home.run(&[&add[..], &["--set", field]].concat());
        assert_eq!((refused.code, refused.error().as_str()), (1, "argument_invalid"), "{scheme}");
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
    }
}

#[test]
fn a_wrong_command_line_is_json_when_json_is_read() {
    let home = Home::new();
    let wrong = ended(home.bare().args(["--json", "tools", "lst"]).output().unwrap());
    assert_eq!((wrong.code, wrong.error().as_str()), (2, "usage"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("lst"), "{}", wrong.stderr);
    assert!(wrong.stdout.is_empty());
    let text = ended(home.bare().args(["tools", "lst"]).output().unwrap());
    assert_eq!(text.code, 2);
    assert!(text.stderr.starts_with("error: "), "{}", text.stderr);
    let help = ended(home.bare().args(["--json", "--help"]).output().unwrap());
    assert_eq!(help.code, 0);
}

#[test]
fn a_config_that_does_not_parse_is_one_sentence() {
    let home = Home::new();
    for (text, said) in [
        ("listen = \n", "config.toml"),
        ("wait_budget_seconds = \"long\"\n", "not the text \"long\""),
        ("[sandbox]\npool = true\n", "`sandbox.pool`"),
    ] {
        home.write("config.toml", text);
        let refused = home.run(&["tools", "list"]);
        assert_eq!((refused.code, refused.error().as_str()), (3, "config_invalid"));
        let error: serde_json::Value = serde_json::from_str(refused.stderr.trim()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        assert!(!message.contains(['\n', '|']), "{message}");
    }
    home.write("config.toml", "");
    let wrong = home.command(&["status"]).env("CAMBIUM_SANDBOX__POOL", "many").output().unwrap();
    let wrong = ended(wrong);
    assert!(wrong.stderr.contains("CAMBIUM_SANDBOX__POOL"), "{}", wrong.stderr);
}
