//! Clocks, randomness, standard output and what is there by name only.

use super::io::{InputStream, OutputStream, Pollable};
use super::kinds::Datetime;
use super::resources::Never;
use super::{Host, Instance};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// Step of every clock, nanoseconds: too coarse to time a cache by.
const STEP: u64 = 1_000_000;
/// Most random bytes of one call.
const RANDOM: u64 = 64 * 1024;

/// Defines the instance of this name, as far as there is one.
pub(crate) fn define(name: &str, to: &mut Instance<'_>) -> Result<()> {
    match name {
        "wasi:cli/environment" => {
            to.gives("get-environment", |host, (): ()| {
                Ok(vec![("CAMBIUM_PROXY_BASE".to_owned(), host.proxy_base.clone())])
            })?;
            to.gives("get-arguments", |_, (): ()| Ok(Vec::<String>::new()))?;
            to.gives("initial-cwd", |_, (): ()| Ok(None::<String>))
        }
        "wasi:cli/exit" => {
            to.does("exit", |_, _: (std::result::Result<(), ()>,)| Err(Error::msg("it exited")))
        }
        "wasi:cli/stdin" => {
            to.gives("get-stdin", |host, (): ()| Ok(host.table.push(InputStream::Empty)?))
        }
        "wasi:cli/stdout" => {
            to.gives("get-stdout", |host, (): ()| Ok(host.table.push(OutputStream::Log)?))
        }
        "wasi:cli/stderr" => {
            to.gives("get-stderr", |host, (): ()| Ok(host.table.push(OutputStream::Log)?))
        }
        "wasi:cli/terminal-stdin" => terminal("get-terminal-stdin", to),
        "wasi:cli/terminal-stdout" => terminal("get-terminal-stdout", to),
        "wasi:cli/terminal-stderr" => terminal("get-terminal-stderr", to),
        "wasi:clocks/monotonic-clock" => monotonic(to),
        "wasi:clocks/wall-clock" => {
            to.gives("now", |_, (): ()| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Ok(datetime(now.as_nanos()))
            })?;
            to.gives("resolution", |_, (): ()| Ok(datetime(u128::from(STEP))))
        }
        "wasi:random/random" => {
            to.gives("get-random-bytes", |_, (length,): (u64,)| random(length))?;
            to.gives("get-random-u64", |_, (): ()| random_u64())
        }
        "wasi:random/insecure" => {
            to.gives("get-insecure-random-bytes", |_, (length,): (u64,)| random(length))?;
            to.gives("get-insecure-random-u64", |_, (): ()| random_u64())
        }
        "wasi:random/insecure-seed" => {
            to.gives("insecure-seed", |_, (): ()| Ok((random_u64()?, random_u64()?)))
        }
        "wasi:filesystem/preopens" => {
            to.gives("get-directories", |_, (): ()| Ok(Vec::<(Resource<Never>, String)>::new()))
        }
        // The rest is a trap.
        _ => Ok(()),
    }
}

fn terminal(name: &str, to: &mut Instance<'_>) -> Result<()> {
    to.gives(name, |_, (): ()| Ok(None::<Resource<Never>>))
}

fn monotonic(to: &mut Instance<'_>) -> Result<()> {
    to.gives("now", |host, (): ()| Ok(host.elapsed()))?;
    to.gives("resolution", |_, (): ()| Ok(STEP))?;
    to.gives("subscribe-instant", |host, (when,): (u64,)| {
        let at = host.started.checked_add(Duration::from_nanos(when));
        Ok(host.table.push(Pollable::at(at))?)
    })?;
    to.gives("subscribe-duration", |host, (time,): (u64,)| {
        let at = Instant::now().checked_add(Duration::from_nanos(time));
        Ok(host.table.push(Pollable::at(at))?)
    })
}

impl Host {
    fn elapsed(&self) -> u64 {
        let now = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        now - now % STEP
    }
}

fn datetime(nanos: u128) -> Datetime {
    let millis = nanos / u128::from(STEP);
    Datetime {
        seconds: u64::try_from(millis / 1_000).unwrap_or(u64::MAX),
        nanoseconds: u32::try_from(millis % 1_000).unwrap_or(0) * 1_000_000,
    }
}

fn random(length: u64) -> Result<Vec<u8>> {
    if length > RANDOM {
        return Err(Error::msg(format!("{length} random bytes at once, the most is {RANDOM}")));
    }
    let mut bytes = vec![0; usize::try_from(length)?];
    getrandom::fill(&mut bytes).map_err(|error| Error::msg(error.to_string()))?;
    Ok(bytes)
}

fn random_u64() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::msg(error.to_string()))
}
