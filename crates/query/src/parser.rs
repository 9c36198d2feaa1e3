//! A query read by descent: `or` binds least, then `and`, then `not`.
//!
//! Each place that makes no sense ends in an error with its column; depth is bounded.

use crate::error::{QueryError, QueryProblem};
use crate::expression::{Expression, Test};
use crate::field::{Field, FieldKind};
use crate::lexer::{Comparison, Token, TokenKind, tokens};
use crate::pattern::Pattern;
use crate::unit::Dimension;
use crate::{MAX_DEPTH, MAX_PATTERNS, MAX_QUERY_BYTES};

pub(crate) fn parse(text: &str) -> Result<Expression, QueryError> {
    if text.len() > MAX_QUERY_BYTES {
        return Err(QueryError::new(0, QueryProblem::TooLong));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, place: 0, depth: 0, patterns: 0 };
    if parser.peek().kind == TokenKind::End {
        return Ok(Expression::All);
    }
    let expression = parser.either()?;
    parser.expect(&TokenKind::End, "`and`, `or` or the end is expected")?;
    Ok(expression)
}

struct Parser {
    /// Ends with [`TokenKind::End`], which is never passed.
    tokens: Vec<Token>,
    place: usize,
    depth: usize,
    patterns: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.place]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != TokenKind::End {
            self.place += 1;
        }
        token
    }

    fn takes(&mut self, kind: &TokenKind) -> bool {
        let found = self.peek().kind == *kind;
        if found {
            self.place += 1;
        }
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found =
            matches!(&self.peek().kind, TokenKind::Word(it) if it.eq_ignore_ascii_case(word));
        if found {
            self.place += 1;
        }
        found
    }

    fn unexpected(&self, expected: &str) -> QueryError {
        let token = self.peek();
        let expected = expected.to_owned();
        QueryError::new(token.column, QueryProblem::Unexpected { found: token.words(), expected })
    }

    fn expect(&mut self, kind: &TokenKind, expected: &str) -> Result<(), QueryError> {
        if self.peek().kind != *kind {
            return Err(self.unexpected(expected));
        }
        self.next();
        Ok(())
    }

    fn either(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.both()?];
        while self.takes(&TokenKind::Or) {
            parts.push(self.both()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Or(parts) })
    }

    fn both(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.one()?];
        while self.takes(&TokenKind::And) {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) })
    }

    fn one(&mut self) -> Result<Expression, QueryError> {
        if self.depth == MAX_DEPTH {
            return Err(QueryError::new(self.peek().column, QueryProblem::TooDeep));
        }
        self.depth += 1;
        let expression = self.deeper();
        self.depth -= 1;
        expression
    }

    fn deeper(&mut self) -> Result<Expression, QueryError> {
        if self.takes(&TokenKind::Not) {
            return Ok(Expression::Not(Box::new(self.one()?)));
        }
        if self.takes(&TokenKind::Open) {
            let inner = self.either()?;
            self.expect(&TokenKind::Close, "`)`, `and` or `or` is expected")?;
            return Ok(inner);
        }
        let token = self.peek().clone();
        match token.kind {
            TokenKind::Word(name) => {
                self.next();
                let field = Field::named(&name).ok_or_else(|| {
                    let close = Field::close_to(&name).map(|field| field.name);
                    QueryError::new(token.column, QueryProblem::NoField { name, close })
                })?;
                Ok(Expression::Test(field, self.test(field)?))
            }
            TokenKind::Pattern(text) => {
                self.next();
                Ok(anywhere(&self.pattern(&text, token.column)?))
            }
            TokenKind::Quoted(text) => {
                self.next();
                Ok(anywhere(&self.pattern(&regex_lite::escape(&text), token.column)?))
            }
            _ => Err(self.unexpected("a field, `not`, `(`, a text or a /pattern/ is expected")),
        }
    }

    fn test(&mut self, field: &'static Field) -> Result<Test, QueryError> {
        if self.takes_word("is") {
            let negated = self.takes(&TokenKind::Not);
            let is_absent = self.takes_word("absent");
            if is_absent || self.takes_word("known") {
                return Ok(Test::Absent { negated: is_absent == negated });
            }
            return Err(self.unexpected("`absent` or `known` is expected"));
        }
        if self.takes_word("in") {
            return self.list(field);
        }
        let token = self.peek().clone();
        let TokenKind::Compare(comparison) = token.kind else {
            return Err(self.unexpected("a comparison such as `==`, `>` or `~` is expected"));
        };
        self.next();
        self.comparison(field, comparison, token.column)
    }

    fn comparison(
        &mut self,
        field: &'static Field,
        comparison: Comparison,
        column: usize,
    ) -> Result<Test, QueryError> {
        use Comparison::{Equal, Like, Unequal, Unlike};
        let is_number = matches!(field.kind, FieldKind::Number(_));
        let fits = match comparison {
            Equal | Unequal => true,
            Like | Unlike => !is_number,
            _ => is_number,
        };
        if !fits {
            let (is, operator) = (field.kind.words(), comparison.sign());
            let problem = QueryProblem::Operator { field: field.name, is, operator };
            return Err(QueryError::new(column, problem));
        }
        match (field.kind, comparison) {
            (FieldKind::Number(dimension), _) => {
                let number = self.number(field, dimension)?;
                Ok(Test::Number(comparison, number))
            }
            (_, Like | Unlike) => {
                let token = self.peek().clone();
                let (TokenKind::Pattern(text) | TokenKind::Quoted(text) | TokenKind::Word(text)) =
                    token.kind
                else {
                    return Err(self.unexpected("a /pattern/ is expected"));
                };
                self.next();
                let pattern = self.pattern(&text, token.column)?;
                Ok(Test::Pattern { pattern, negated: comparison == Unlike })
            }
            _ => Ok(Test::Text { text: self.text(field)?, negated: comparison == Unequal }),
        }
    }

    fn list(&mut self, field: &'static Field) -> Result<Test, QueryError> {
        self.expect(&TokenKind::Open, "`(` is expected after `in`")?;
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        loop {
            match field.kind {
                FieldKind::Number(dimension) => numbers.push(self.number(field, dimension)?),
                FieldKind::Text | FieldKind::Word(_) => texts.push(self.text(field)?),
            }
            if self.takes(&TokenKind::Comma) {
                continue;
            }
            self.expect(&TokenKind::Close, "`,` or `)` is expected")?;
            return Ok(match field.kind {
                FieldKind::Number(_) => Test::NumberIn(numbers),
                FieldKind::Text | FieldKind::Word(_) => Test::TextIn(texts),
            });
        }
    }

    fn text(&mut self, field: &'static Field) -> Result<String, QueryError> {
        let token = self.peek().clone();
        let (TokenKind::Word(text) | TokenKind::Quoted(text)) = token.kind else {
            return Err(self.unexpected("a text is expected"));
        };
        self.next();
        if let FieldKind::Word(words) = field.kind
            && !words.iter().any(|word| word.eq_ignore_ascii_case(&text))
        {
            let expected = format!("one of {}", words.join(", "));
            let problem = QueryProblem::Value { field: field.name, expected, value: text };
            return Err(QueryError::new(token.column, problem));
        }
        Ok(text)
    }

    fn pattern(&mut self, text: &str, column: usize) -> Result<Pattern, QueryError> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(QueryError::new(column, QueryProblem::TooManyPatterns));
        }
        Pattern::new(text)
            .map_err(|error| QueryError::new(column, QueryProblem::Pattern(error.to_string())))
    }

    /// A number with its unit, which may stand apart, in the base unit.
    fn number(&mut self, field: &'static Field, dimension: Dimension) -> Result<f64, QueryError> {
        let token = self.peek().clone();
        let TokenKind::Word(word) = &token.kind else {
            return Err(self.unexpected("a number is expected"));
        };
        let end = word.find(|it: char| !it.is_ascii_digit() && it != '.' && it != '_');
        let (digits, unit) = word.split_at(end.unwrap_or(word.len()));
        let digits = digits.replace('_', "");
        let unfit = || {
            let (expected, value) = (field.kind.words(), word.clone());
            QueryError::new(
                token.column,
                QueryProblem::Value { field: field.name, expected, value },
            )
        };
        let number: f64 = digits.parse().map_err(|_| unfit())?;
        let mut factor = if unit.is_empty() { Some(1.0) } else { dimension.factor(unit) };
        self.next();
        if unit.is_empty()
            && let TokenKind::Word(unit) = &self.peek().kind
            && let Some(apart) = dimension.factor(unit)
        {
            factor = Some(apart);
            self.next();
        }
        let number = number * factor.ok_or_else(unfit)?;
        if number.is_finite() { Ok(number) } else { Err(unfit()) }
    }
}

/// That one of the fields by which people know a row has this in it.
fn anywhere(pattern: &Pattern) -> Expression {
    const SEARCHED: [&str; 7] = ["name", "command", "user", "pod", "container", "device", "board"];
    let tests = SEARCHED.iter().filter_map(|name| Field::named(name)).map(|field| {
        let test = Test::Pattern { pattern: pattern.clone(), negated: false };
        Expression::Test(field, test)
    });
    Expression::Or(tests.collect())
}
