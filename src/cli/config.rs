//! `aye config`: prints settings and the locations of files.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;

pub(crate) fn path(app: &AppContext) -> Result<Exit, CliError> {
    let directories = &app.directories;
    print_text(&format!(
        "config  {}\npolicy  {}\nkeys    {}\ndata    {}\n",
        directories.config_file().display(),
        directories.config.join("policy.toml").display(),
        directories.keymap_file().display(),
        directories.data.display()
    ));
    Ok(Exit::Completed)
}

/// Prints every key with its value and where it was set, including in the project's settings.
pub(crate) fn show(app: &AppContext, common: &Common) -> Result<Exit, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let (settings, lines) = match project.tighten_settings(&app.settings) {
        Some(Ok((settings, layer))) => {
            let mut lines = vec!["# .aye/config.toml is trusted; it tightens:".to_owned()];
            lines.extend(layer.taken.iter().map(|line| format!("#   {line}")));
            if layer.taken.is_empty() {
                lines.push("#   nothing".to_owned());
            }
            lines.extend(layer.ignored.iter().map(|line| format!("# {line}")));
            (settings, lines.join("\n") + "\n")
        }
        Some(Err(error)) => (app.settings.clone(), format!("# {error}\n# the project's settings are ignored\n")),
        None if project.has_settings() => {
            let line = "# .aye/config.toml is ignored: this project is not trusted\n";
            (app.settings.clone(), line.to_owned())
        }
        None => (app.settings.clone(), String::new()),
    };
    print_text(&(settings.show() + &lines));
    Ok(Exit::Completed)
}

/// Prints every key with its type, default and meaning.
pub(crate) fn keys() -> Result<Exit, CliError> {
    print_text(&crate::config::key_list());
    Ok(Exit::Completed)
}

/// Prints the JSON Schema of `config.toml`.
pub(crate) fn schema() -> Result<Exit, CliError> {
    print_text(&format!("{:#}\n", crate::config::json_schema()));
    Ok(Exit::Completed)
}
