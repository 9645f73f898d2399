//! The binary: `cambium`. Reads configuration, builds the parts, joins them,
//! and drains them again; every command of the command line; the demo. What a
//! call means is in `engine`, what may leave in `proxy`, what runs jailed in
//! `engine/isolate`.

mod assemble;
mod author;
mod backup;
mod checker;
mod cli;
mod config;
mod control;
mod data_dir;
mod demo;
mod discreet;
mod failure;
mod first_code;
mod keeper;
mod listener;
mod notify;
mod outside;
mod paste;
mod post;
mod sandboxes;
mod sdk;
mod typescript;
mod workbench;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread: this process may have been started as one of the jail's.
    if let Some(ended) = cambium_isolate::role_main(checker::ONESHOTS) {
        return ended;
    }
    discreet::be();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(cli::main());
            // A read of stdin that never returns must not keep a finished bridge.
            runtime.shutdown_background();
            code
        }
        Err(error) => cli::broken(&error),
    }
}
