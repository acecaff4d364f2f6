//! The `sweep` program: everything is in the library.

fn main() {
    if sweep::backend::guest::agent::is_agent() {
        sweep::backend::guest::agent::run();
    }
}
