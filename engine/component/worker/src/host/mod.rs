//! What a component can call. It is written for WASI 0.2: HTTP through the run's
//! session, coarse clocks, randomness, standard output as log lines, and nothing
//! else. A file system, sockets and arguments are there by name, empty or a trap,
//! since what compilers make imports them unasked. Nothing here decides what may
//! be sent; the session does.

mod http;
mod io;
mod kinds;
mod plain;
mod resources;
mod wire;

use cambium_jail::job::Out;
use io::Body;
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::runtime::Runtime;
use wasmtime::component::{
    Component, ComponentNamedList, ComponentType, Lift, Linker, LinkerInstance, Lower,
    ResourceTable,
};
use wasmtime::{ResourceLimiter, Result, StoreContextMut};
pub(crate) use wire::Wire;

/// Table elements of all tables; real components have thousands.
const TABLE_ELEMENTS: usize = 1_000_000;
/// Resources a component holds at once.
const RESOURCES: usize = 100_000;
/// Largest line that is kept whole, bytes.
const LINE: usize = 8 * 1024;

/// One run, as its component's calls find it.
pub(crate) struct Host {
    wire: Wire,
    table: ResourceTable,
    /// Request bodies while they are written.
    bodies: BTreeMap<u32, Body>,
    last_body: u32,
    started: Instant,
    /// Origin of the connection's primary host.
    proxy_base: String,
    out: Out,
    line: Vec<u8>,
    log_left: usize,
    /// Bytes of lines that were left out, not told yet.
    unsaid: u64,
    memory_left: usize,
    tables_left: usize,
    /// Memory was refused to it.
    pub(crate) wanted_more: bool,
}

/// What a run may use and is told.
pub(crate) struct Terms {
    pub(crate) log_bytes: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) proxy_base: String,
}

impl Host {
    pub(crate) fn new(wire: Wire, out: Out, terms: Terms) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        Self {
            wire,
            table,
            bodies: BTreeMap::new(),
            last_body: 0,
            started: Instant::now(),
            proxy_base: terms.proxy_base,
            out,
            line: Vec::new(),
            log_left: terms.log_bytes,
            unsaid: 0,
            memory_left: terms.memory_bytes,
            tables_left: TABLE_ELEMENTS,
            wanted_more: false,
        }
    }

    /// Bytes of standard output or error; lines are told when they end.
    fn print(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(&part[..part.len().min(LINE)]);
            if part.ends_with(b"\n") || self.line.len() >= LINE {
                self.end_line();
            }
        }
    }

    /// Tells the line that was begun, if any.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            return;
        }
        if line.len() >= self.log_left {
            self.unsaid += line.len() as u64;
        } else {
            self.log_left -= line.len() + 1;
            self.out.log(line, std::mem::take(&mut self.unsaid));
        }
    }

    /// Tells what is left to tell when the component has ended, and gives back
    /// what was lent for the run.
    pub(crate) fn end(mut self) -> (Runtime, Out) {
        self.end_line();
        if self.unsaid > 0 {
            self.out.log("", self.unsaid);
        }
        (self.wire.into_runtime(), self.out)
    }
}

/// Defines what the component imports, under the very names it imports it by;
/// what is left of those is a trap when it is called.
pub(crate) fn link(linker: &mut Linker<Host>, component: &Component) -> Result<()> {
    let engine = linker.engine().clone();
    for (name, _) in component.component_type().imports(&engine) {
        let mut instance = Instance(linker.instance(name)?);
        resources::define(&mut instance.0)?;
        match name.split('@').next().unwrap_or_default() {
            "wasi:io/error" => io::errors(&mut instance)?,
            "wasi:io/poll" => io::poll(&mut instance)?,
            "wasi:io/streams" => io::streams(&mut instance)?,
            "wasi:http/types" => http::types(&mut instance)?,
            "wasi:http/outgoing-handler" => http::handler(&mut instance)?,
            other => plain::define(other, &mut instance)?,
        }
    }
    linker.define_unknown_imports_as_traps(component)
}

/// An instance being defined.
struct Instance<'a>(LinkerInstance<'a, Host>);

impl Instance<'_> {
    /// A function with a result.
    fn gives<P, R>(
        &mut self,
        name: &str,
        does: impl Fn(&mut Host, P) -> Result<R> + Send + Sync + 'static,
    ) -> Result<()>
    where
        P: ComponentNamedList + Lift + 'static,
        R: ComponentType + Lower + 'static,
    {
        self.0.func_wrap(name, move |mut store: StoreContextMut<'_, Host>, params: P| {
            Ok((does(store.data_mut(), params)?,))
        })
    }

    /// A function without one.
    fn does<P>(
        &mut self,
        name: &str,
        does: impl Fn(&mut Host, P) -> Result<()> + Send + Sync + 'static,
    ) -> Result<()>
    where
        P: ComponentNamedList + Lift + 'static,
    {
        self.0.func_wrap(name, move |mut store: StoreContextMut<'_, Host>, params: P| {
            does(store.data_mut(), params)
        })
    }
}

/// A component that wants more memory than its run has is refused it, as any may be;
/// what it cannot do without ends the run.
impl ResourceLimiter for Host {
    fn memory_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        let more = wanted.saturating_sub(now);
        if more > self.memory_left {
            self.wanted_more = true;
            return Ok(false);
        }
        self.memory_left -= more;
        Ok(true)
    }

    fn table_growing(&mut self, now: usize, wanted: usize, _: Option<usize>) -> Result<bool> {
        let more = wanted.saturating_sub(now);
        let fits = more <= self.tables_left;
        if fits {
            self.tables_left -= more;
        }
        Ok(fits)
    }
}
