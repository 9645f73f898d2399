//! Long, mixed load: reads by the engine and through MCP, searches, lists, dry
//! runs of a write, detached runs that are collected, a new version published
//! now and then. The first part measures the capacity in a closed loop; then
//! calls come at 70 % of it, each counted from the moment it was due. An agent
//! has no more calls at work than the engine allows, as a harness would: the
//! others wait, and their wait counts. Where too many wait, a call is left out:
//! a failure, unless the machine was at work for others shortly before.
//!
//! Each minute is a row; at the end `verdict` says what does not hold, then
//! `burst` asks for more at once than there is room for. `--minutes N` or
//! `CAMBIUM_SOAK_MINUTES`, an hour unless said; five minutes is what CI runs.

use crate::burst::{self, AN_AGENT};
use crate::figures::Row;
use crate::house::{House, create_order, list_orders};
use crate::process;
use crate::verdict::{self, Sample, Seen, Slice};
use crate::{Client, mcp_client, try_through};
use cambium_engine::{CallRequest, Caller, Envelope, Status};
use cambium_sandbox_tests::vendor::Vendor;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const MINUTES: f64 = 60.0;
/// The part of the run that measures the capacity, and the longest it may be.
const FIRST_PART: f64 = 0.1;
const FIRST_MOST: Duration = Duration::from_secs(60);
/// Of the capacity.
const SHARE: f64 = 0.7;
/// With the one that speaks MCP as many as the node has places for.
const FURTHER_AGENTS: usize = burst::A_NODE / AN_AGENT - 1;
/// At once, while the capacity is measured.
const CALLERS: usize = 8;
const POOL: usize = 1;
/// A version may stay in memory for each of these, for ever.
const PUBLISH_EVERY: Duration = Duration::from_secs(20);
/// The 99th percentile is taken of each.
const SLICE: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);
/// No answer after this is a failed call.
const DEADLINE: Duration = Duration::from_secs(60);
/// Calls under way and waiting; those due beyond it are left out.
const UNANSWERED: usize = 512;
/// How long after a disturbance what has waited may still be felt.
const AFTER: Duration = Duration::from_secs(15);
/// Failed calls that are printed.
const SAID: usize = 10;

/// How long, by the arguments or the environment.
pub(crate) fn minutes(arguments: &[String]) -> f64 {
    let after = arguments.iter().position(|word| word == "--minutes").map(|at| at + 1);
    let given = after.and_then(|at| arguments.get(at).cloned());
    let given = given.or_else(|| std::env::var("CAMBIUM_SOAK_MINUTES").ok());
    given.map_or(MINUTES, |text| text.parse().expect("minutes are a number"))
}

/// Everything the calls are made of.
struct Load {
    house: House,
    /// The machine is, or was shortly before, at work for others.
    disturbed: AtomicBool,
    callers: Vec<(Caller, Semaphore)>,
    client: Client,
    versions: AtomicUsize,
}

/// The load, the verdict and the bursts.
pub(crate) async fn run(vendor: &Vendor, minutes: f64) -> (Value, Result<(), String>) {
    verdict::prove();
    vendor.forget();
    let whole = Duration::from_secs_f64(minutes * 60.0);
    let cancel = CancellationToken::new();
    let load = Arc::new(load(vendor, &cancel).await);
    let first = whole.mul_f64(FIRST_PART).min(FIRST_MOST);
    let capacity = capacity(&load, first).await;
    println!(
        "capacity {capacity:.0} calls a second; {:.0} of them for {:.1} minutes\n",
        capacity * SHARE,
        (whole - first).as_secs_f64() / 60.0
    );
    let (seen, rows) = open_loop(&load, capacity * SHARE, whole - first).await;
    let mut broken = verdict::judge(&seen);
    if verdict::latency(&seen).is_none() {
        println!("latency is not judged: the machine was at work for others, or the run was short");
    }
    cancel.cancel();
    if let Some(load) = Arc::into_inner(load) {
        let _ = load.client.cancel().await;
        load.house.close().await;
    }
    let (bursts, more) = burst::run(POOL).await;
    broken.extend(more);
    let json = json!({
        "minutes": minutes, "capacity": capacity, "share": SHARE, "calls": seen.calls,
        "failed": seen.failed, "each_minute": rows, "bursts": bursts, "broken": broken,
    });
    (json, if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) })
}

async fn load(vendor: &Vendor, cancel: &CancellationToken) -> Load {
    let house = House::build(vendor, POOL, "soak").await;
    house.publish(0).await.expect("a publish");
    let mut callers = house.agents(FURTHER_AGENTS).await;
    callers.insert(0, house.caller.clone());
    let address = house.serve(cancel.clone()).await;
    let client = mcp_client(address.port(), Some(&house.token)).await;
    let callers = callers.into_iter().map(|caller| (caller, Semaphore::new(AN_AGENT))).collect();
    Load {
        house,
        disturbed: AtomicBool::new(false),
        callers,
        client,
        versions: AtomicUsize::new(1),
    }
}

impl Load {
    /// One call of the mix, by its number; what went wrong is the error.
    async fn call(&self, number: usize) -> Result<(), String> {
        match tokio::time::timeout(DEADLINE, self.any(number)).await {
            Ok(answered) => answered,
            Err(_) => Err("no answer in time".into()),
        }
    }

    async fn any(&self, number: usize) -> Result<(), String> {
        // Every caller gets every kind: there are four of one and twenty of the other.
        let (caller, places) = &self.callers[number / 20 % self.callers.len()];
        let kind = number % 20;
        match kind {
            0..=10 => {
                let _place = places.acquire().await;
                is(Status::Ok, &self.house.ask(caller, list_orders()).await)
            }
            11 | 12 => {
                let _place = self.callers[0].1.acquire().await;
                try_through(&self.client).await
            }
            13 | 14 => {
                let query = format!("list orders {}", number % 97);
                let found = self.house.engine.find_tool(caller, &query).await;
                let hits = found.map_err(|error| error.code().to_owned())?.hits;
                if hits.is_empty() { Err("a search found nothing".into()) } else { Ok(()) }
            }
            15 | 16 => {
                let listed = self.house.engine.tool_list(caller).await;
                listed.map(|_| ()).map_err(|error| error.code().to_owned())
            }
            17 | 18 => {
                let _place = places.acquire().await;
                is(Status::DryRun, &self.house.ask(caller, create_order()).await)
            }
            _ => {
                let _place = places.acquire().await;
                let request = CallRequest { detached: true, ..list_orders() };
                let begun = self.house.ask(caller, request).await;
                is(Status::Running, &begun)?;
                let run = begun.run.unwrap_or_default();
                let wait = self.house.engine.wait_for_process(caller, &run, DEADLINE);
                let ended = wait.await.map_err(|error| error.code().to_owned())?;
                is(Status::Ok, &ended)
            }
        }
    }

    async fn publish(&self) -> Result<(), String> {
        let number = self.versions.fetch_add(1, Ordering::Relaxed);
        self.house.publish(number).await.map_err(|error| error.code().to_owned())
    }

    fn database_kib(&self) -> u64 {
        let store = self.house.database();
        let beside = |end: &str| format!("{}{end}", store.display());
        let sizes = ["", "-wal", "-shm"].map(|end| std::fs::metadata(beside(end)));
        sizes.into_iter().flatten().map(|file| file.len()).sum::<u64>() / 1024
    }
}

fn is(wanted: Status, envelope: &Envelope) -> Result<(), String> {
    if envelope.status == wanted {
        return Ok(());
    }
    Err(format!("{:?} {:?} {:?}", envelope.status, envelope.code, envelope.message))
}

/// Calls a second of some callers who do not wait.
async fn capacity(load: &Arc<Load>, lasts: Duration) -> f64 {
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (load, next) = (load.clone(), next.clone());
        callers.spawn(async move {
            while began.elapsed() < lasts {
                let called = load.call(next.fetch_add(1, Ordering::Relaxed)).await;
                assert_eq!(called, Ok(()), "while the capacity was measured");
            }
        });
    }
    callers.join_all().await;
    next.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// How a call ended.
enum Ended {
    /// As it should, milliseconds after it was due.
    Well(f64),
    /// Otherwise.
    Ill(String),
    /// It was not made: too many were waiting.
    LeftOut,
}

async fn open_loop(load: &Arc<Load>, rate: f64, lasts: Duration) -> (Seen, Vec<Value>) {
    let (sender, ended) = mpsc::unbounded_channel();
    let unanswered = Arc::new(AtomicUsize::new(0));
    let watching = tokio::spawn(watch(load.clone(), ended));
    let began = Instant::now();
    let mut publish = began + PUBLISH_EVERY;
    for number in 0.. {
        let due = began + Duration::from_secs_f64(number as f64 / rate);
        if due > began + lasts {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let publishes = due > publish;
        if publishes {
            publish += PUBLISH_EVERY;
        }
        if unanswered.load(Ordering::Relaxed) >= UNANSWERED {
            let _ = sender.send(Ended::LeftOut);
            continue;
        }
        unanswered.fetch_add(1, Ordering::Relaxed);
        let (load, sender, unanswered) = (load.clone(), sender.clone(), unanswered.clone());
        tokio::spawn(async move {
            let called = match publishes {
                true => load.publish().await,
                false => load.call(number).await,
            };
            unanswered.fetch_sub(1, Ordering::Relaxed);
            let _ = sender.send(match called {
                Ok(()) => Ended::Well(due.elapsed().as_secs_f64() * 1e3),
                Err(why) => Ended::Ill(why),
            });
        });
    }
    drop(sender);
    watching.await.expect("the watching task")
}

/// Takes the answers in and looks at the process each second, until every call
/// is answered.
async fn watch(load: Arc<Load>, mut ended: mpsc::UnboundedReceiver<Ended>) -> (Seen, Vec<Value>) {
    println!(
        "| minute | calls | failed | left out | p50 ms | p99 ms | resident KiB | processes | their PSS KiB | descriptors | database KiB | others had of the machine, at most |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut watching = Watching::new();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            one = ended.recv() => match one {
                Some(one) => watching.take(one, load.disturbed.load(Ordering::Relaxed)),
                None => {
                    watching.look(&load, true);
                    return (watching.seen, watching.rows);
                }
            },
            _ = second.tick() => watching.look(&load, false),
        }
    }
}

/// What is seen. Keeps no latency longer than a minute, or it would look like a
/// leak itself.
struct Watching {
    seen: Seen,
    rows: Vec<Value>,
    began: Instant,
    slice: Vec<f64>,
    slice_ends: Duration,
    quiet: bool,
    others: process::Others,
    last_disturbed: Option<Duration>,
    minute: Minute,
    minute_ends: Duration,
}

#[derive(Default)]
struct Minute {
    times: Vec<f64>,
    failed: usize,
    left_out: usize,
    busiest: f64,
}

impl Watching {
    fn new() -> Self {
        Self {
            seen: Seen::default(),
            rows: Vec::new(),
            began: Instant::now(),
            slice: Vec::new(),
            slice_ends: SLICE,
            quiet: true,
            others: process::Others::new(),
            last_disturbed: None,
            minute: Minute::default(),
            minute_ends: MINUTE,
        }
    }

    fn take(&mut self, one: Ended, disturbed: bool) {
        match one {
            Ended::Well(took) => {
                self.seen.calls += 1;
                self.slice.push(took);
                self.minute.times.push(took);
            }
            Ended::Ill(why) => {
                self.seen.failed += 1;
                self.minute.failed += 1;
                if self.seen.failed <= SAID {
                    eprintln!("a call failed: {why}");
                }
            }
            Ended::LeftOut => {
                self.minute.left_out += 1;
                self.seen.failed += usize::from(!disturbed);
            }
        }
    }

    fn look(&mut self, load: &Load, over: bool) {
        let now = self.began.elapsed();
        let sample = Sample {
            seconds: now.as_secs_f64(),
            resident_kib: process::resident_kib() as f64,
            descriptors: process::descriptors() as f64,
        };
        self.seen.samples.push(sample);
        let share = self.others.share();
        self.minute.busiest = self.minute.busiest.max(share);
        if share > process::DISTURBED {
            self.last_disturbed = Some(now);
        }
        let disturbed = self.last_disturbed.is_some_and(|last| now < last + AFTER);
        load.disturbed.store(disturbed, Ordering::Relaxed);
        self.quiet &= !disturbed;
        if now >= self.slice_ends || over {
            self.slice_ends += SLICE;
            if !self.slice.is_empty() {
                let (_, p99) = percentiles(&mut self.slice);
                let quiet = std::mem::replace(&mut self.quiet, true);
                self.seen.slices.push(Slice { p99, quiet });
            }
        }
        if now >= self.minute_ends || over {
            self.minute_ends += MINUTE;
            self.row(load, sample);
        }
    }

    fn row(&mut self, load: &Load, sample: Sample) {
        let Minute { mut times, failed, left_out, busiest } = std::mem::take(&mut self.minute);
        let calls = times.len();
        let (p50, p99) = percentiles(&mut times);
        let children = process::children();
        let pss: u64 = children.iter().filter_map(|pid| process::pss(*pid)).sum();
        let (number, processes, database) =
            (self.rows.len() + 1, children.len(), load.database_kib());
        let (resident, open) = (sample.resident_kib, sample.descriptors);
        println!(
            "| {number} | {calls} | {failed} | {left_out} | {p50:.2} | {p99:.2} | {resident:.0} | {processes} | {pss} | {open:.0} | {database} | {:.0} % |",
            busiest * 100.0,
        );
        self.rows.push(json!({
            "calls": calls, "failed": failed, "left_out": left_out, "p50_ms": p50,
            "p99_ms": p99, "resident_kib": resident, "processes": processes,
            "processes_pss_kib": pss, "descriptors": open, "database_kib": database,
            "others_share": busiest,
        }));
    }
}

/// The median and the 99th percentile; leaves nothing behind.
fn percentiles(times: &mut Vec<f64>) -> (f64, f64) {
    let mut row = Row::new("");
    row.push(std::mem::take(times));
    (row.percentile(50.0), row.percentile(99.0))
}
