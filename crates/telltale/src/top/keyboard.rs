//! What a terminal sends, in the view's own terms.

use ratatui_crossterm::crossterm::event::{
    Event as Sent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent,
    MouseEventKind,
};
use telltale_smi::screen::{InputEvent, PressedKey};

/// The event, if it means anything to the view. A change of the size is none: the frame has it.
pub(super) fn event(sent: &Sent) -> Option<InputEvent> {
    match sent {
        Sent::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(InputEvent::Key),
        Sent::Mouse(mouse) => pointed(mouse),
        _ => None,
    }
}

fn key_of(key: &KeyEvent) -> Option<PressedKey> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(character) if control => PressedKey::Control(character.to_ascii_lowercase()),
        KeyCode::Char(character) => PressedKey::Char(character),
        KeyCode::F(number) => PressedKey::Function(number),
        KeyCode::Enter => PressedKey::Enter,
        KeyCode::Esc => PressedKey::Escape,
        KeyCode::Tab | KeyCode::BackTab => PressedKey::Tab,
        KeyCode::Backspace => PressedKey::Backspace,
        KeyCode::Delete => PressedKey::Delete,
        KeyCode::Left => PressedKey::Left,
        KeyCode::Right => PressedKey::Right,
        KeyCode::Up => PressedKey::Up,
        KeyCode::Down => PressedKey::Down,
        KeyCode::PageUp => PressedKey::PageUp,
        KeyCode::PageDown => PressedKey::PageDown,
        KeyCode::Home => PressedKey::Home,
        KeyCode::End => PressedKey::End,
        _ => return None,
    })
}

fn pointed(mouse: &MouseEvent) -> Option<InputEvent> {
    let MouseEvent { column, row, .. } = *mouse;
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(InputEvent::Pressed { column, row }),
        MouseEventKind::ScrollUp => Some(InputEvent::Wheel { up: true, row }),
        MouseEventKind::ScrollDown => Some(InputEvent::Wheel { up: false, row }),
        _ => None,
    }
}
