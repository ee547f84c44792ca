//! The terminal screen: model, update, view.
