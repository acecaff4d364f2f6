//! The `sweep` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    if sweep::backend::guest::agent::is_agent() {
        sweep::backend::guest::agent::run();
    }
    sweep::cli::main()
}
