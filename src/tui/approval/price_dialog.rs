//! Dialog that asks for a model's price, which aye needs to enforce a budget in dollars.

use super::dialog_kind::{DialogKind, HintState};
use super::{Body, ChoiceAction, Dialog, DialogAnswer, Note, Verb};
use crate::protocol::{AssumedPrice, ModelFacts};
use crate::text;
use crate::tui::composer::TextField;
use crate::tui::theme::Token;
use std::borrow::Cow;

/// Label shown before the line field.
const LABEL: &str = "input,output: ";
const VERB: Verb = Verb { long: "use it", short: "use" };

/// State of the form in which the user enters the price of a model.
#[derive(Debug)]
pub(crate) struct PriceForm {
    /// Name of the model whose price is needed.
    pub model: String,
    /// Budget that cannot be enforced without the price, formatted with its unit.
    budget: Option<String>,
    /// Name of the same model at another provider, and its price there, formatted like the expected input.
    elsewhere: Option<(String, String)>,
    /// Reason why the last input was rejected, if it was.
    problem: Option<String>,
}

impl PriceForm {
    pub(crate) fn new(model: &str, facts: Option<&ModelFacts>, budget: Option<String>) -> Self {
        let elsewhere = facts.filter(|facts| facts.name == model).and_then(|facts| facts.price_elsewhere.as_ref());
        let elsewhere = elsewhere.map(|one| (one.model.clone(), format!("{},{}", one.price.input, one.price.output)));
        Self { model: model.to_owned(), budget, elsewhere, problem: None }
    }

    pub(crate) fn panel(self) -> Dialog {
        let title = format!("The price of {} is unknown", text::reveal_line(&self.model));
        let reason = match &self.budget {
            Some(amount) => format!("aye needs it to enforce the budget of {amount}"),
            None => "aye needs it to enforce the budget in dollars".to_owned(),
        };
        let (body, field) = (self.body(), self.field());
        let mut panel = Dialog::new(Box::new(self), title, reason, Vec::new(), body);
        panel.words = Some(field);
        panel
    }

    /// Returns the line field, prefilled with the suggested price if there is one.
    fn field(&self) -> TextField {
        let mut field = TextField::new();
        if let Some((_, price)) = &self.elsewhere {
            field.insert(price);
        }
        field
    }

    fn body(&self) -> Body {
        let how = "Dollars per million tokens, input and output (example: 3,15). The price applies to this session.";
        // The problem comes first, because a small screen shows only the beginning.
        let problem = self.problem.iter().map(|problem| Note::new(problem.clone(), Token::Danger));
        let mut notes: Vec<Note> = problem.chain([Note::new(how.to_owned(), Token::Text)]).collect();
        if let Some((model, price)) = &self.elsewhere {
            let words = format!("{price} is the price of {}; this provider may charge another price.", text::reveal_line(model));
            notes.push(Note::new(words, Token::Muted));
        }
        Body::notes(notes, VERB, String::new())
    }

    /// Parses the input as a price. If the input is invalid, returns `None` and stores the problem to be shown in the
    /// dialog.
    pub(crate) fn read(&mut self, input: &str) -> Option<AssumedPrice> {
        let price = AssumedPrice::parse(input.trim());
        self.problem = price.is_none().then(|| match input.trim() {
            "" => "Enter two amounts, or press esc to stay paused.".to_owned(),
            input => {
                let input = text::truncate(&text::reveal_line(input), 30).into_owned();
                format!("`{input}` is not a price: enter two amounts up to 100000, such as 3,15")
            }
        });
        price
    }
}

impl DialogKind for PriceForm {
    fn answer(&mut self, _act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        None
    }

    fn is_called_for(&self) -> bool {
        true
    }

    fn is_form(&self) -> bool {
        true
    }

    /// Keeps the text that was already typed. If there is none yet, prefills the field with the suggested price.
    fn field_when_armed(&self, current: Option<TextField>) -> Option<TextField> {
        current.or_else(|| Some(self.field()))
    }

    fn field_label(&self) -> Cow<'_, str> {
        LABEL.into()
    }

    fn key_hints(&self, _state: HintState) -> Option<Vec<&'static str>> {
        Some(vec!["enter use it", "esc stay paused", "ctrl+u clear"])
    }
}

/// Rebuilds the dialog's body from the form.
pub(crate) fn refresh_price(panel: &mut Dialog) {
    let Some(form) = panel.kind.find::<PriceForm>() else { return };
    panel.body = form.body();
}
