//! The deno_core sandbox in the jail.
