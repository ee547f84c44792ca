use ratatui::style::{Color, Modifier};

use super::*;

const TOKENS: [Token; 16] = [
    Token::Text,
    Token::Muted,
    Token::Faint,
    Token::Accent,
    Token::Ok,
    Token::Warn,
    Token::Danger,
    Token::Critical,
    Token::Added,
    Token::AddedWord,
    Token::Removed,
    Token::RemovedWord,
    Token::Code,
    Token::Heading,
    Token::Link,
    Token::Quote,
];

const SYNTAX: [Syntax; 8] = [
    Syntax::Keyword,
    Syntax::Function,
    Syntax::Type,
    Syntax::String,
    Syntax::Number,
    Syntax::Comment,
    Syntax::Attribute,
    Syntax::Operator,
];

fn number(colour: Color) -> Rgb {
    match colour {
        Color::Rgb(red, green, blue) => Rgb { red, green, blue },
        Color::Indexed(index) => Rgb::indexed(index),
        other => panic!("not a measurable colour: {other:?}"),
    }
}

/// Every pair that is too close, in words.
fn faults(theme: &Theme) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |what: String, one: Rgb, two: Rgb, least: f64| {
        let contrast = one.contrast(two);
        if contrast < least {
            faults.push(format!("{} {:?} {what}: {contrast:.2}, expected {least}", theme.name, theme.colours));
        }
    };
    for token in TOKENS {
        let style = theme.style(token);
        let ground = style.bg.map_or(theme.palette.background, number);
        let least = if token == Token::Text { 7.0 } else { 4.5 };
        check(format!("{token:?}"), number(style.fg.expect("a colour")), ground, least);
    }
    for syntax in SYNTAX {
        let colour = number(theme.syntax(syntax, Token::Text).fg.expect("a colour"));
        check(format!("{syntax:?}"), colour, theme.palette.background, 4.5);
        for token in [Token::Added, Token::Removed] {
            let style = theme.syntax(syntax, token);
            assert_eq!(style.bg, theme.style(token).bg, "the tint of the line");
            check(
                format!("{syntax:?} on {token:?}"),
                number(style.fg.expect("a colour")),
                number(style.bg.expect("a tint")),
                4.5,
            );
        }
    }
    faults
}

#[test]
fn every_theme_keeps_its_contrast_in_true_and_in_256_colours() {
    let mut found = Vec::new();
    for name in Theme::names() {
        for colours in [Colours::True, Colours::Indexed256] {
            found.extend(faults(&Theme::by_name(name).expect(name).with_colours(colours)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_contrast_of_black_and_white_is_21() {
    let black = Rgb::default();
    let white = Rgb { red: 255, green: 255, blue: 255 };
    assert!((black.contrast(white) - 21.0).abs() < 0.01);
}

#[test]
fn themes_for_a_light_background_have_light_in_their_name() {
    for name in Theme::names() {
        let theme = Theme::by_name(name).expect(name);
        assert_eq!(theme.light, name.contains("light"), "{name}");
        assert_eq!(theme.light, theme.palette.background.is_light(), "{name}");
    }
}

#[test]
fn without_colours_no_style_has_one() {
    let theme = Theme::choose(None, Colours::None);
    for token in TOKENS {
        assert_eq!((theme.style(token).fg, theme.style(token).bg), (None, None), "{token:?}");
    }
    for syntax in SYNTAX {
        let style = theme.syntax(syntax, Token::Text);
        assert_eq!((style.fg, style.bg), (None, None), "{syntax:?}");
    }
    assert!(theme.style(Token::AddedWord).add_modifier.contains(Modifier::UNDERLINED));
}

#[test]
fn sixteen_colours_leave_the_ground_to_the_terminal_and_nothing_is_dim() {
    for colours in [Colours::True, Colours::Indexed256, Colours::Sixteen, Colours::None] {
        for background in [None, Some((255, 255, 255))] {
            let theme = Theme::choose(background, colours);
            for token in TOKENS {
                let style = theme.style(token);
                assert!(!style.add_modifier.contains(Modifier::DIM), "{token:?}");
                assert!(colours != Colours::Sixteen || style.bg.is_none(), "{token:?}");
            }
        }
    }
}

#[test]
fn the_background_decides_between_dark_and_light() {
    for (background, name) in
        [(None, "dark"), (Some((0, 0, 0)), "dark"), (Some((253, 246, 227)), "light"), (Some((40, 44, 52)), "dark")]
    {
        assert_eq!(Theme::choose(background, Colours::True).name, name, "{background:?}");
    }
}

#[test]
fn added_and_removed_lines_stay_apart_in_256_colours() {
    for name in Theme::names() {
        let theme = Theme::by_name(name).expect(name).with_colours(Colours::Indexed256);
        assert_ne!(theme.style(Token::Added).bg, theme.style(Token::Removed).bg, "{name}");
    }
}

#[test]
fn a_broken_theme_file_says_where_and_what() {
    let good = BUILT_IN[0].1;
    for (text, expected) in [
        (good.replace("7AB7FF", "7AB7F"), "expected six hex digits"),
        (good.replace("accent", "acent"), "unknown field `acent`"),
        (good.replace("[added]", "[aded]"), "unknown field `aded`"),
        (String::from("light = 3"), "expected a boolean"),
    ] {
        let error = Theme::parse("mine", &text).expect_err(&text).to_string();
        assert!(error.contains(expected) && error.contains("line"), "{error}");
    }
}
