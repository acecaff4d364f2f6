//! `sweep schema`: what a sweep file may hold, for editors and for the documentation.

use clap::Args;

use crate::spec::{reference, schema};

use super::exit::Exit;
use super::{print, print_json};

/// Arguments of `sweep schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Print the tables of keys and presets as Markdown, as they stand in docs/sweep-file.md.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn describe(arguments: &SchemaArgs) -> Result<Exit, Exit> {
    if arguments.markdown {
        print(&reference())?;
        return Ok(Exit::Done);
    }
    print_json(&schema())
}
