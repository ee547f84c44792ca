//! Mapping from grammar scopes to syntax kinds.

use syntect::parsing::{Scope, ScopeStack};

use crate::tui::theme::Syntax;

/// Scope prefixes and the syntax kinds that they map to. The first prefix that matches the innermost scope applies.
/// `None` means plain text.
const MEANINGS: &[(&str, Option<Syntax>)] = &[
    ("comment", Some(Syntax::Comment)),
    ("punctuation.definition.comment", Some(Syntax::Comment)),
    ("punctuation.definition.string", Some(Syntax::String)),
    ("constant.character.escape", Some(Syntax::Attribute)),
    ("constant.other.placeholder", Some(Syntax::Attribute)),
    ("constant", Some(Syntax::Number)),
    ("string", Some(Syntax::String)),
    ("markup.raw", Some(Syntax::String)),
    ("markup.inserted", Some(Syntax::String)),
    ("markup.deleted", Some(Syntax::Number)),
    ("markup.heading", Some(Syntax::Keyword)),
    ("entity.name.section", Some(Syntax::Keyword)),
    ("entity.name.function", Some(Syntax::Function)),
    ("support.function", Some(Syntax::Function)),
    ("variable.function", Some(Syntax::Function)),
    ("support.macro", Some(Syntax::Function)),
    ("entity.name.macro", Some(Syntax::Function)),
    ("entity.name.tag", Some(Syntax::Keyword)),
    ("entity.name.lifetime", Some(Syntax::Attribute)),
    ("entity.other.attribute-name", Some(Syntax::Attribute)),
    ("variable.annotation", Some(Syntax::Attribute)),
    ("meta.annotation", Some(Syntax::Attribute)),
    ("entity.name", Some(Syntax::Type)),
    ("entity.other.inherited-class", Some(Syntax::Type)),
    ("support.type", Some(Syntax::Type)),
    ("support.class", Some(Syntax::Type)),
    ("support.constant", Some(Syntax::Number)),
    ("storage", Some(Syntax::Keyword)),
    ("variable.language", Some(Syntax::Keyword)),
    ("keyword.operator.word", Some(Syntax::Keyword)),
    ("keyword.operator", Some(Syntax::Operator)),
    ("keyword", Some(Syntax::Keyword)),
    ("punctuation", Some(Syntax::Operator)),
    ("variable", None),
    ("meta.interpolation", None),
    ("meta.template.expression", None),
];

/// Table of parsed scopes, and the last result, which often applies again because adjacent pieces of text tend to have
/// the same scopes.
pub(super) struct Meanings {
    table: Vec<(Scope, Option<Syntax>)>,
    last: (Vec<Scope>, Option<Syntax>),
}

impl Meanings {
    pub(crate) fn new() -> Self {
        let table = MEANINGS.iter().filter_map(|(name, meaning)| Some((Scope::new(name).ok()?, *meaning)));
        Self { table: table.collect(), last: (Vec::new(), None) }
    }

    pub(crate) fn syntax(&mut self, scopes: &ScopeStack) -> Option<Syntax> {
        if self.last.0 != scopes.scopes {
            self.last = (scopes.scopes.clone(), self.look_up_scopes(&scopes.scopes));
        }
        self.last.1
    }

    fn look_up_scopes(&self, scopes: &[Scope]) -> Option<Syntax> {
        let mut from_inside = scopes.iter().rev();
        from_inside
            .find_map(|scope| self.table.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)))
            .and_then(|(_, meaning)| *meaning)
    }
}
