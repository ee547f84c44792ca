//! `aye policy init`: writes a starter policy. An existing policy is replaced only on request.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::policy_templates::{InitPlace, Template, template_text, write};

pub(crate) fn run(app: &AppContext, template: Template, to: InitPlace) -> Result<Exit, CliError> {
    let text = template_text(template);
    if to == InitPlace::Stdout {
        print_text(&text);
        return Ok(Exit::Completed);
    }
    let (directory, private) = match template {
        Template::Preset(_) => (app.directories.config.clone(), true),
        Template::Project => (app.workspace.join(".aye"), false),
    };
    let file = directory.join("policy.toml");
    let backup = write(&directory, &file, &text, private, to == InitPlace::Replace)?;
    let kept = backup.map_or_else(String::new, |backup| format!("saved the old file as {}\n", backup.display()));
    let next = match template {
        Template::Preset(_) => "next: `aye policy show`, `aye policy explain -- COMMAND`, `aye policy test`\n",
        Template::Project => {
            "next: commit it; it applies to everyone who trusts the project, and can only make their policy stricter\n"
        }
    };
    print_text(&crate::text::reveal(&format!("wrote {}\n{kept}{next}", file.display())));
    Ok(Exit::Completed)
}
