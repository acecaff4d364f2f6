//! The command line: one file a subcommand, exit codes in `exit`. May import every room.

mod baseline;
mod check;
mod compare;
mod confirm;
mod doctor;
mod exit;
mod explain;
mod gate;
mod kernel;
mod more;
mod output;
mod plot;
mod progress;
mod read;
mod run;
mod schema;
mod show;
mod stored;

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::backend::guest::kernel::KernelStore;
use crate::settings::names;
use crate::spec::{Overrides, SpecErrors, Sweep};
use crate::sys::namespace;

use self::exit::Exit;
use self::output::{print, say};

/// What do these socket settings do to latency and throughput, on this kernel, and why?
///
/// A sweep file names the settings and the values to try. Each combination is a cell; each cell is measured several times
/// between two isolated network namespaces, on this machine's kernel or on another one in a guest.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure every cell of a sweep, and store every repeat.
    Run(run::RunArgs),
    /// Tell what a sweep would do, where, and for how long, without doing it.
    Check(check::CheckArgs),
    /// Show the results of a run, or of one of its cells.
    Show(show::ShowArgs),
    /// Say why the cells of a run are as they are, and what separates the slow ones from the fast ones.
    Explain(explain::ExplainArgs),
    /// Draw the heatmaps of a run, the ratio of two runs, distributions, or buffers over time.
    Plot(plot::PlotArgs),
    /// Write the page of a run: one file to open in a browser, with every cell's details.
    Report(plot::ReportArgs),
    /// Compare two runs, cell by cell: what changed, and how sure that is.
    Compare(compare::CompareArgs),
    /// Judge a run against a baseline: exit code 1 for a regression, 2 where it cannot be told.
    Gate(gate::GateArgs),
    /// Keep what a run measured in a file, for `sweep gate`.
    Baseline(baseline::BaselineArgs),
    /// Print the JSON Schema of a sweep file, so that an editor completes and checks it.
    Schema(schema::SchemaArgs),
    /// Tell what this machine can do, and what to do about what it cannot.
    Doctor(doctor::DoctorArgs),
    /// Manage the kernels that guests run, and the frozen machines made of them.
    Kernel(kernel::KernelArgs),
}

/// Changes to a sweep from the command line.
#[derive(Debug, Args)]
struct SweepArgs {
    /// Measure each cell this many times instead of what the file says; with --precision at most so many times. MIN..MAX is from so
    /// many to so many.
    #[arg(long, value_name = "N")]
    repeat: Option<String>,
    /// Measure each cell until the interval of its median reaches no farther from it than this share: 2%.
    #[arg(long, value_name = "PERCENT")]
    precision: Option<String>,
    /// Set a key or an axis: `--set rcvbuf=1024,64KiB`, `--set kernel.image=debian:6.12`.
    #[arg(long, value_name = "KEY=VALUE[,VALUE]", value_parser = assignment)]
    set: Vec<Assignment>,
    /// Keep only these values of an axis: `--filter rcvbuf=1024,64KiB`.
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]", value_parser = assignment)]
    filter: Vec<Assignment>,
}

/// A key and its values, as typed.
#[derive(Clone, Debug)]
struct Assignment(String, Vec<String>);

fn assignment(text: &str) -> Result<Assignment, crate::spec::ParseAssignmentError> {
    Overrides::assignment(text).map(|(key, values)| Assignment(key, values))
}

impl SweepArgs {
    fn overrides(&self) -> Overrides {
        let pairs =
            |list: &[Assignment]| list.iter().map(|Assignment(key, values)| (key.clone(), values.clone())).collect();
        Overrides {
            repeat: self.repeat.clone(),
            precision: self.precision.clone(),
            set: pairs(&self.set),
            filter: pairs(&self.filter),
            ..Overrides::default()
        }
    }

    /// Reads a sweep file and applies the changes; prints what is wrong with it.
    /// Also gives the text of the file.
    fn load(&self, file: &std::path::Path, capture: bool) -> Result<(Sweep, String), Exit> {
        let overrides = Overrides { capture, ..self.overrides() };
        Sweep::load_with_text(file, &overrides).map_err(|errors| complain_of_sweep(&errors))
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and clap gives 2 for those that are.
            let _ = error.print();
            return if error.use_stderr() { Exit::Wrong.into() } else { Exit::Done.into() };
        }
    };
    let ended = match cli.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Report(arguments) => plot::report(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Gate(arguments) => gate::gate(&arguments),
        Command::Baseline(arguments) => baseline::baseline(&arguments),
        Command::Schema(arguments) => schema::describe(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Kernel(arguments) => kernel::kernel(&arguments),
    };
    ended.unwrap_or_else(|exit| exit).into()
}

/// Prints an error and what led to it.
fn complain(error: &dyn Error) -> Exit {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many messages already have their cause in them.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    say!("error: {text}");
    Exit::Wrong
}

/// Prints all errors of a sweep, each with its place.
fn complain_of_sweep(errors: &SpecErrors) -> Exit {
    let terminal = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let theme = if terminal { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let width = usize::from(width().unwrap_or(100)).clamp(60, 140);
    let mut text = String::new();
    match GraphicalReportHandler::new_themed(theme).with_width(width).render_report(&mut text, errors) {
        Ok(()) => output::coloured(text.trim_end()),
        Err(_) => say!("error: {errors}"),
    }
    Exit::Wrong
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<Exit, Exit> {
    let text = serde_json::to_string_pretty(value).map_err(|error| complain(&error))?;
    print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}

/// The width of the terminal that tables are printed to, or `None` where it is no terminal.
fn width() -> Option<u16> {
    std::io::stdout().is_terminal().then(|| comfy_table::Table::new().width()).flatten()
}

/// The store of kernels, or why there is none.
fn store() -> Result<KernelStore, String> {
    KernelStore::open_default().map_err(|error| error.to_string())
}

/// The program that becomes the agent of guests: this one.
fn program() -> Result<PathBuf, Exit> {
    std::env::current_exe().map_err(|error| complain(&error))
}

/// Makes native cells possible for an ordinary user: enters a user namespace, which only a process with a single thread can.
/// Returns why native cells cannot run, where they cannot.
fn become_native() -> Option<String> {
    if namespace::may_unshare_network() {
        return None;
    }
    namespace::enter_user_namespace().err().map(|error| error.to_string())
}

/// Whether a name is a key of a cell, for messages that suggest one.
fn is_key(name: &str) -> bool {
    names(name).0.contains(&name)
}
