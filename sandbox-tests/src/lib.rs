//! Support for the sandbox tests.
