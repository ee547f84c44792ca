//! Stack of open layers. The topmost layer is the last element.

use super::{Help, ScreenLayer, ShownList, TextViewer};
use crate::tui::picker::Row;
use std::any::Any;

#[derive(Default)]
pub(crate) struct LayerStack {
    layers: Vec<Box<dyn ScreenLayer>>,
}

impl LayerStack {
    /// Opens a layer on top, replacing any open layer of the same type. Closes the help and text viewers, because they
    /// would cover the new layer.
    pub(crate) fn open<T: ScreenLayer>(&mut self, layer: T) {
        self.make_room();
        self.push(layer);
    }

    /// Opens a layer on top, replacing any open layer of the same type. A layer that covers dialogs, such as the help,
    /// stays on top.
    pub(crate) fn push<T: ScreenLayer>(&mut self, layer: T) {
        self.close::<T>();
        let is_below = self.covers_questions() && !layer.covers_questions();
        let at = self.layers.len() - usize::from(is_below);
        self.layers.insert(at, Box::new(layer));
    }

    /// Opens a layer below all others, because the user may have opened another one since requesting it.
    pub(crate) fn insert_below<T: ScreenLayer>(&mut self, layer: T) {
        self.close::<T>();
        self.layers.insert(0, Box::new(layer));
    }

    /// Closes the help and the text viewer.
    fn make_room(&mut self) {
        self.close::<Help>();
        self.close::<TextViewer>();
    }

    /// Closes the layer of type `T` and returns it, or returns `None` if it was not open.
    pub(crate) fn close<T: ScreenLayer>(&mut self) -> Option<T> {
        self.close_if(|_: &T| true)
    }

    /// Closes the layer of type `T` if it is open and satisfies the condition. Returns the layer if it was closed.
    pub(crate) fn close_if<T: ScreenLayer>(&mut self, condition: impl FnOnce(&T) -> bool) -> Option<T> {
        let at = self.layers.iter().position(|layer| is::<T>(layer.as_ref()))?;
        if !condition(self.find::<T>()?) {
            return None;
        }
        let layer: Box<dyn Any> = self.layers.remove(at);
        layer.downcast().ok().map(|layer| *layer)
    }

    /// Closes the topmost layer.
    pub(crate) fn close_top(&mut self) {
        self.layers.pop();
    }

    /// Returns the open layer of type `T`, if there is one.
    pub(crate) fn find<T: ScreenLayer>(&self) -> Option<&T> {
        self.layers.iter().find_map(|layer| {
            let layer: &dyn Any = layer.as_ref();
            layer.downcast_ref()
        })
    }

    /// Returns a mutable reference to the open layer of type `T`, if there is one.
    pub(crate) fn find_mut<T: ScreenLayer>(&mut self) -> Option<&mut T> {
        self.layers.iter_mut().find_map(|layer| {
            let layer: &mut dyn Any = layer.as_mut();
            layer.downcast_mut()
        })
    }

    /// Replaces the rows of the list that shows this kind of data, if such a list is open.
    pub(crate) fn set_rows(&mut self, shown: ShownList, rows: impl FnOnce() -> Vec<Row>) {
        if let Some(layer) = self.layers.iter_mut().find(|layer| layer.shown_list() == Some(shown)) {
            layer.set_rows(rows());
        }
    }

    /// Returns whether a layer of type `T` is open.
    pub(crate) fn is_open<T: ScreenLayer>(&self) -> bool {
        self.find::<T>().is_some()
    }

    pub(crate) fn top(&self) -> Option<&dyn ScreenLayer> {
        self.layers.last().map(AsRef::as_ref)
    }

    pub(crate) fn top_mut(&mut self) -> Option<&mut dyn ScreenLayer> {
        Some(self.layers.last_mut()?.as_mut())
    }

    /// Returns whether the topmost layer covers open dialogs.
    pub(crate) fn covers_questions(&self) -> bool {
        self.top().is_some_and(|layer| layer.covers_questions())
    }

    /// Returns the layer to draw, if any. While a dialog is open, some layers are not drawn.
    pub(crate) fn drawn(&self, is_question_open: bool) -> Option<&dyn ScreenLayer> {
        let is_drawn = |layer: &&dyn ScreenLayer| !is_question_open || layer.stays_above_question();
        self.layers.iter().rev().map(AsRef::as_ref).find(is_drawn)
    }

    /// Returns a mutable reference to the layer to draw, if any. See [`Self::drawn`].
    pub(crate) fn drawn_mut(&mut self, is_question_open: bool) -> Option<&mut dyn ScreenLayer> {
        let is_drawn = |layer: &dyn ScreenLayer| !is_question_open || layer.stays_above_question();
        let at = self.layers.iter().rposition(|layer| is_drawn(layer.as_ref()))?;
        Some(self.layers[at].as_mut())
    }

    /// Returns whether any open layer is drawn in place of the composer.
    pub(crate) fn replace_composer(&self) -> bool {
        self.layers.iter().any(|layer| layer.replaces_composer())
    }
}

fn is<T: ScreenLayer>(layer: &dyn ScreenLayer) -> bool {
    let layer: &dyn Any = layer;
    layer.is::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keymap::Focus;
    use crate::tui::layers::{BranchList, RewindList};

    #[test]
    fn the_last_opened_layer_is_on_top_and_a_second_one_of_its_type_replaces_the_first() {
        let mut stack = LayerStack::default();
        stack.open(BranchList::new());
        stack.open(RewindList::new());
        stack.open(BranchList::new());
        assert!(stack.top().is_some_and(is::<BranchList>) && stack.is_open::<RewindList>());
        stack.close_top();
        assert!(stack.top().is_some_and(is::<RewindList>) && !stack.is_open::<BranchList>());
    }

    #[test]
    fn a_list_closes_the_help_and_text_views_but_a_text_view_opened_later_stays_above_it() {
        let mut stack = LayerStack::default();
        stack.push(TextViewer::with_title("a", "b"));
        stack.push(Help::new(Focus::Composer, ""));
        assert!(stack.covers_questions());
        stack.open(RewindList::new());
        assert!(!stack.is_open::<Help>() && !stack.is_open::<TextViewer>());
        stack.push(TextViewer::with_title("a", "b"));
        assert!(stack.drawn(false).is_some_and(is::<TextViewer>));
        assert!(stack.drawn(true).is_some_and(is::<RewindList>), "an open question needs the room of the text");
    }

    #[test]
    fn a_text_view_that_arrives_does_not_cover_the_help() {
        let mut stack = LayerStack::default();
        stack.push(Help::new(Focus::Composer, ""));
        stack.push(TextViewer::with_title("a", "b"));
        assert!(stack.top().is_some_and(is::<Help>) && stack.is_open::<TextViewer>());
        stack.close_top();
        assert!(stack.top().is_some_and(is::<TextViewer>));
    }

    #[test]
    fn layers_close_by_type_and_condition() {
        let mut stack = LayerStack::default();
        stack.insert_below(RewindList::new());
        assert!(stack.close::<BranchList>().is_none());
        assert!(stack.close_if(|_: &RewindList| false).is_none() && stack.is_open::<RewindList>());
        assert!(stack.close::<RewindList>().is_some_and(|list| list.is_empty()) && stack.top().is_none());
    }
}
