//! One wasmtime configuration, for compiling and for running: both sides must
//! agree on it. Machine code is never made: components are compiled for the
//! portable interpreter, so that a worker maps nothing executable, and what
//! cannot be bounded or repeated (threads, clocks, files) is not linked.

use wasmtime::{Config, Engine, Result};

/// The interpreter's target.
const TARGET: &str = "pulley64";
/// Stack of a component's own calls, bytes; below the worker's.
const STACK: usize = 1024 * 1024;

/// The engine of this process.
pub(crate) fn engine() -> Result<Engine> {
    let mut config = Config::new();
    config.target(TARGET)?;
    config.wasm_component_model(true);
    config.max_wasm_stack(STACK);
    // A worker has a hard limit on its memory and no use for reservations, and
    // it may neither install a signal handler nor map a file.
    config.memory_reservation(0);
    config.memory_reservation_for_growth(0);
    config.memory_guard_size(0);
    config.guard_before_linear_memory(false);
    config.memory_init_cow(false);
    config.signals_based_traps(false);
    Engine::new(&config)
}
