//! What the kernel says of this process and of those it started.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// From this share on a machine is disturbed by what others do.
pub(crate) const DISTURBED: f64 = 0.1;

/// The kernel's hundredths are too coarse for a shorter look.
const MOMENT: Duration = Duration::from_millis(500);

/// The share of the machine's CPU time that went to others, between two looks.
pub(crate) struct Others {
    at: Instant,
    machine: f64,
    own: f64,
}

impl Others {
    /// Begins to look.
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), machine: machine_seconds(), own: own_seconds() }
    }

    /// Since the last look; nought when that was a moment ago.
    pub(crate) fn share(&mut self) -> f64 {
        if self.at.elapsed() < MOMENT {
            return 0.0;
        }
        let now = Self::new();
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let had = (now.at - self.at).as_secs_f64() * processors;
        let others = (now.machine - self.machine) - (now.own - self.own);
        *self = now;
        others / had
    }
}

/// CPU seconds all processors have worked.
fn machine_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; the guests' are in the first two.
    let working = [0, 1, 2, 5, 6, 7].map(|at| ticks.get(at).copied().unwrap_or(0.0));
    working.iter().sum::<f64>() / TICKS
}

/// CPU seconds of this process and of those it started, ended or not.
fn own_seconds() -> f64 {
    let alive = children().into_iter().map(|pid| cpu_seconds(&pid.to_string()));
    cpu_seconds("self") + alive.sum::<f64>()
}

/// The kernel reports in hundredths of a second on every Linux.
const TICKS: f64 = 100.0;

/// CPU seconds a process and its waited-for children have used.
pub(crate) fn cpu_seconds(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// CPU seconds that the threads of this process with a name have used.
pub(crate) fn thread_seconds(name: &str) -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let text = |task: &fs::DirEntry, file| fs::read_to_string(task.path().join(file));
    let named = tasks.filter(|task| text(task, "comm").is_ok_and(|comm| comm.trim_end() == name));
    let nanoseconds = named.filter_map(|task| {
        let times = text(&task, "schedstat").ok()?;
        times.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}

/// Resident KiB of this process: engine, proxy, store and the bench's own
/// vendor.
pub(crate) fn resident_kib() -> u64 {
    field(Path::new("/proc/self/status"), "VmRSS:").unwrap_or(0)
}

/// Open descriptors of this process.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Processes this one has started and not yet waited for: zygotes and workers.
pub(crate) fn children() -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Proportional set size of a process, KiB; nothing when the kernel does not
/// tell (not root: workers are not dumpable) or it has ended.
pub(crate) fn pss(pid: u32) -> Option<u64> {
    field(Path::new(&format!("/proc/{pid}/smaps_rollup")), "Pss:")
}

fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
