use ratatui::style::{Color, Modifier};

use super::*;

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

/// Returns a description of every pair of colours with too little contrast.
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
fn every_theme_has_enough_contrast_in_true_and_256_colours() {
    let mut found = Vec::new();
    for name in Theme::names() {
        for colours in [ColourDepth::True, ColourDepth::Indexed256] {
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
fn without_colours_no_style_sets_a_colour() {
    let theme = Theme::choose(None, ColourDepth::None);
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
fn sixteen_colours_set_no_background_and_no_style_is_dim() {
    for colours in [ColourDepth::True, ColourDepth::Indexed256, ColourDepth::Sixteen, ColourDepth::None] {
        for background in [None, Some((255, 255, 255))] {
            let theme = Theme::choose(background, colours);
            for token in TOKENS {
                let style = theme.style(token);
                assert!(!style.add_modifier.contains(Modifier::DIM), "{token:?}");
                assert!(colours != ColourDepth::Sixteen || style.bg.is_none(), "{token:?}");
            }
        }
    }
}

#[test]
fn the_terminal_background_selects_the_dark_or_light_theme() {
    for (background, name) in
        [(None, "dark"), (Some((0, 0, 0)), "dark"), (Some((253, 246, 227)), "light"), (Some((40, 44, 52)), "dark")]
    {
        assert_eq!(Theme::choose(background, ColourDepth::True).name, name, "{background:?}");
    }
}

#[test]
fn added_and_removed_lines_differ_in_256_colours() {
    for name in Theme::names() {
        let theme = Theme::by_name(name).expect(name).with_colours(ColourDepth::Indexed256);
        assert_ne!(theme.style(Token::Added).bg, theme.style(Token::Removed).bg, "{name}");
    }
}

#[test]
fn errors_in_theme_files_name_the_line_and_the_problem() {
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

#[test]
fn custom_themes_override_only_the_given_values() {
    let mine = Theme::parse_user_theme("mine", "accent = \"FF00FF\"\n[added]\nline = \"112211\"\n").expect("a theme");
    assert_eq!(mine.palette, Palette { accent: mine.palette.accent, added: mine.palette.added, ..Theme::dark().palette });
    assert_eq!(mine.style(Token::Accent).fg, Some(Color::Rgb(255, 0, 255)));
    assert_eq!(mine.palette.added.text, Theme::dark().palette.added.text);
    let light = Theme::parse_user_theme("mine-light", "light = true\n").expect("a theme");
    assert_eq!(light.palette, Theme::light().palette);
    assert!(light.light && light.background().is_none());
    let painted = Theme::parse_user_theme("mine", "paint = true\nbackground = \"#101010\"").expect("a theme");
    assert_eq!(painted.background(), Some(Color::Rgb(16, 16, 16)));
}

#[test]
fn theme_files_are_found_by_name_and_errors_name_the_line() {
    let place = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect("a file");
    write("mine.toml", "text = \"EEEEEE\"\n");
    write("broken.toml", "light = false\n\nacent = \"EEEEEE\"\n");
    write("colour.toml", "muted = \"grey\"\n");
    let find = |name: &str| find(Some(place.path()), name);
    assert_eq!(find("mine").expect("a theme").name, "mine");
    assert_eq!(find("light").expect("a theme").name, "light");
    assert_eq!(list(Some(place.path())), ["broken", "colour", "mine"]);
    for (name, expected) in [
        ("broken", "broken.toml:3: unknown field `acent`"),
        ("colour", "colour.toml:1: invalid colour `grey`"),
        ("none", "unknown theme `none`; /theme lists"),
        ("../mine", "unknown theme"),
        ("", "unknown theme"),
    ] {
        let problem = find(name).expect_err(name);
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn low_contrast_colours_of_a_theme_are_detected() {
    for name in Theme::names() {
        assert_eq!(Theme::by_name(name).expect(name).lowest_contrast(), None, "{name}");
    }
    let (token, contrast) =
        Theme::parse_user_theme("mine", "faint = \"444444\"").expect("a theme").lowest_contrast().expect("it is weak");
    assert!(token == "faint" && contrast < 2.0, "{token} {contrast}");
}

/// Checks the contrast of typical definitions of the sixteen colours with the backgrounds on which the colours are
/// used.
#[test]
fn only_readable_colours_of_the_sixteen_are_used() {
    let number = |colour: Color| -> Rgb {
        let (red, green, blue) = match colour {
            Color::Red => (205, 0, 0),
            Color::Green => (0, 205, 0),
            Color::Yellow => (205, 205, 0),
            Color::Magenta => (205, 0, 205),
            Color::Blue => (0, 0, 238),
            Color::Cyan => (0, 205, 205),
            Color::LightRed => (255, 0, 0),
            Color::LightMagenta => (255, 0, 255),
            Color::LightCyan => (0, 255, 255),
            other => panic!("{other:?} is hard to read somewhere"),
        };
        Rgb { red, green, blue }
    };
    let dark = Theme::dark().with_colours(ColourDepth::Sixteen);
    let all = TOKENS.iter().map(|token| dark.style(*token)).chain(SYNTAX.iter().map(|syntax| dark.syntax(*syntax, Token::Text)));
    for style in all {
        if let Some(colour) = style.fg {
            let contrast = number(colour).contrast(Rgb::default());
            assert!(contrast >= 4.5, "{style:?}: {contrast}");
        }
    }
}
