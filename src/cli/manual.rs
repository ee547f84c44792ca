//! `aye man`: prints the manual page, or writes the manual pages of all commands to files.

use super::args;
use crate::host::console::print_text;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::protocol::Problem;
use std::path::Path;

pub(crate) fn run(directory: Option<&Path>) -> Result<Exit, CliError> {
    let Some(directory) = directory else {
        let page = args::manual().map_err(|error| CliError::failed(format!("cannot generate the manual page: {error}")))?;
        print_text(&page);
        return Ok(Exit::Completed);
    };
    args::write_manual(directory).map_err(|error| {
        let what = format!("cannot write the manual to `{}`", directory.display());
        CliError::usage(Problem::new(what).because(error).hint("choose an existing directory"))
    })?;
    print_text(&format!("wrote the manual pages to {}\n", directory.display()));
    Ok(Exit::Completed)
}
