//! Status row items, and their names in the settings.

/// Item that the status row can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusItem {
    Model,
    Context,
    Cost,
    Mode,
    Sandbox,
    Branch,
    Directory,
    /// Output of the user's own status command.
    Command,
}

const FIELDS: [(&str, StatusItem); 8] = [
    ("model", StatusItem::Model),
    ("context", StatusItem::Context),
    ("cost", StatusItem::Cost),
    ("mode", StatusItem::Mode),
    ("sandbox", StatusItem::Sandbox),
    ("branch", StatusItem::Branch),
    ("directory", StatusItem::Directory),
    ("command", StatusItem::Command),
];

fn field_from_name(name: &str) -> Option<StatusItem> {
    FIELDS.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
}

/// Returns the configured items in order, without duplicates. Mandatory items that are missing are appended.
pub(crate) fn fields(names: &[String]) -> Vec<StatusItem> {
    let mut fields: Vec<StatusItem> = Vec::new();
    let usual = FIELDS.iter().map(|(_, field)| *field);
    let wanted = names.iter().filter_map(|name| field_from_name(name));
    let always = [StatusItem::Mode, StatusItem::Sandbox];
    for field in if names.is_empty() { usual.collect() } else { wanted.chain(always).collect::<Vec<_>>() } {
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

/// Returns whether an item is configured, rather than shown only because it is mandatory.
pub(crate) fn is_wanted(names: &[String], field: StatusItem) -> bool {
    names.is_empty() || names.iter().any(|name| field_from_name(name) == Some(field))
}

/// Returns whether any configured item depends on the git state of the workspace.
pub(crate) fn shows_worktree(names: &[String]) -> bool {
    is_wanted(names, StatusItem::Branch) || is_wanted(names, StatusItem::Command)
}

/// Returns a warning about unknown item names, if there are any.
pub(crate) fn unknown_fields_warning(names: &[String]) -> Option<String> {
    let unknown: Vec<String> = names
        .iter()
        .filter(|name| field_from_name(name).is_none())
        .map(|name| format!("`{}`", crate::text::reveal(name)))
        .collect();
    let all = FIELDS.map(|(name, _)| name).join(", ");
    let items = if unknown.len() == 1 { "item" } else { "items" };
    (!unknown.is_empty()).then(|| format!("[status] items: unknown {items} {}, ignored; valid items: {all}", unknown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn status_items_keep_the_configured_order_and_mandatory_ones_stay() {
        use StatusItem::{Branch, Command, Context, Cost, Directory, Mode, Model, Sandbox};
        for (given, expected) in [
            (&[][..], vec![Model, Context, Cost, Mode, Sandbox, Branch, Directory, Command]),
            (&["branch", "model"], vec![Branch, Model, Mode, Sandbox]),
            (&["mode", "cost", "mode", "nonsense"], vec![Mode, Cost, Sandbox]),
        ] {
            assert_eq!(fields(&names(given)), expected, "{given:?}");
        }
        assert!(shows_worktree(&[]) && !shows_worktree(&names(&["cost"])));
    }

    #[test]
    fn unknown_status_items_are_reported() {
        assert_eq!(unknown_fields_warning(&names(&["model"])), None);
        let words = unknown_fields_warning(&names(&["clock", "cwd", "model"])).unwrap();
        assert!(words.starts_with("[status] items: unknown items `clock`, `cwd`, ignored"), "{words}");
    }
}
