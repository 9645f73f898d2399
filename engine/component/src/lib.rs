//! The WebAssembly sandbox in the jail, behind the engine's `Sandbox` like the
//! TypeScript one: tools in any language that compiles to a component of the world
//! in `wit/tool.wit`. This is the engine's half; what compiles and interprets is
//! the binary of `worker/`, which alone names wasmtime.

mod compiler;
mod sandbox;

pub use sandbox::{ComponentConfig, ComponentSandbox};

/// The world a component is written for.
pub const WORLD: &str = include_str!("../wit/tool.wit");
