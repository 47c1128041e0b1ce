package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"exchange-gateway/internal/market"
)

// readFile applies the file. It reads the tree of the YAML itself, for three reasons: every problem is found at once, each
// setting keeps the place where it was given, and nothing that stands in the file gets into an error but the names of
// settings: a line with a typing mistake may hold a secret.
func (l *loader) readFile(path string) {
	text, err := readBounded(path)
	if err != nil {
		l.unreadable("", fmt.Errorf("read configuration: %w", err))
		return
	}
	root, err := parse(text)
	if err != nil {
		l.unreadable("", fmt.Errorf("%s: %w", path, err))
		return
	}
	if root != nil {
		r := fileReader{loader: l, file: path}
		r.value("", reflect.ValueOf(l.conf).Elem(), root)
	}
}

// parse returns the root of the one document in text, nil if it says nothing. The library panics on some text that is no
// YAML (v1.19.2, found by fuzzing); that is a mistake of the file like any other.
func parse(text []byte) (root ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, errors.New("it cannot be read as YAML")
		}
	}()
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with it
	if err := encoding(text); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxProblem(err)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case root != nil:
			return nil, fmt.Errorf("%sa second document begins: put all settings into one, without ---", place(doc.Body))
		default:
			root = doc.Body
		}
	}
	return root, nil
}

// syntaxProblem says what the parser found and where. A message of it that quotes the file is not passed on.
func syntaxProblem(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil {
		return errors.New("it cannot be read as YAML")
	}
	message, at := e.GetMessage(), e.GetToken().Position
	switch {
	case strings.Contains(message, "\t"):
		message = "a tab: indent with spaces"
	case strings.Contains(message, `"`):
		message = "it cannot be read as YAML"
	default:
		message += " (each level is indented by two spaces; put a value with : # { } [ ] , or a quote in it into quotes)"
	}
	return fmt.Errorf("[%d:%d] %s", at.Line, at.Column, message)
}

// place is "[line:column] " of a node.
func place(n ast.Node) string {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return ""
	}
	at := n.GetToken().Position
	return fmt.Sprintf("[%d:%d] ", at.Line, at.Column)
}

// fileReader walks the tree of one file and sets what it finds.
type fileReader struct {
	*loader
	file string
}

// problem adds one because of which the setting or group at path has no value.
func (r *fileReader) problem(path string, at ast.Node, format string, args ...any) {
	r.unreadable(path, fmt.Errorf("%s: %s%s%s", r.file, place(at), about(path), fmt.Sprintf(format, args...)))
}

// misnamed adds one of a name in the group at path that is no setting. Those beside it have their values.
func (r *fileReader) misnamed(path string, at ast.Node, format string, args ...any) {
	r.unreadable(strings.TrimPrefix(path+"."+noSetting, "."), fmt.Errorf("%s: %s%s%s", r.file, place(at), about(path), fmt.Sprintf(format, args...)))
}

// value reads a node into the setting or the group of settings v, which is called path. A name without a value is as if
// it were left out.
func (r *fileReader) value(path string, v reflect.Value, node ast.Node) {
	if node == nil || node.Type() == ast.NullType {
		return
	}
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.problem(path, node, "anchors (&), aliases (*) and tags (!) are not taken: write the value itself")
		return
	}
	if isLeaf(v.Type()) {
		r.setting(path, v, node)
		return
	}
	entries, ok := entriesOf(node)
	if !ok {
		r.problem(path, node, "a group of settings is wanted: write each as name: value, one a line and indented")
		return
	}
	seen := map[string]bool{}
	for _, e := range entries {
		name, ok := textOf(e.Key)
		switch {
		case !ok:
			r.misnamed(path, e.Key, "the name of a setting is wanted")
		case seen[name]:
			r.misnamed(path, e.Key, "%s is given twice", r.shown(v, name))
		default:
			seen[name] = true
			r.entry(path, v, name, e)
		}
	}
}

// entry reads one name and what stands behind it.
func (r *fileReader) entry(path string, v reflect.Value, name string, e *ast.MappingValueNode) {
	below := strings.TrimPrefix(path+"."+name, ".")
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if settingName(v.Type().Field(i)) == name {
				r.value(below, v.Field(i), e.Value)
				return
			}
		}
		r.misnamed(path, e.Key, "%s is no setting; the settings here are %s", r.shown(v, name), strings.Join(fieldNames(v), ", "))
		return
	}
	switch exchanges := v.Type() == reflect.TypeFor[Exchanges](); {
	case exchanges && !slices.Contains(r.known, market.ExchangeID(name)):
		r.misnamed("", e.Key, "exchange %s is unknown; the exchanges are %s", r.shown(v, name), list(r.known))
		return
	case !exchanges && !nameRule.MatchString(name):
		r.misnamed(path, e.Key, "an account's name has a-z, 0-9, - and _ only, at most 32 of them")
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	entry := reflect.New(v.Type().Elem()).Elem()
	r.value(below, entry, e.Value)
	v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), entry)
}

// setting reads the value of one setting.
func (r *fileReader) setting(path string, v reflect.Value, node ast.Node) {
	r.given[path] = r.file + ": " + place(node)
	into, isList := v.Addr().Interface().(*[]string)
	items, ok := node.(*ast.SequenceNode)
	switch {
	case isList && ok:
		texts := make([]string, 0, len(items.Values))
		for _, item := range items.Values {
			text, ok := textOf(item)
			if !ok {
				r.problem(path, item, "a list of texts is wanted: put each into quotes, for example [%q]", "http://127.0.0.1:8000")
				return
			}
			texts = append(texts, text)
		}
		*into = texts
		return
	case ok:
		r.problem(path, node, "one value is wanted, not a list")
		return
	}
	text, ok := textOf(node)
	if !ok {
		r.problem(path, node, "one value is wanted, not a group of settings")
		return
	}
	if namesFile(path) {
		text = r.beside(path, text)
	}
	if err := setLeaf(v, text); err != nil {
		r.problem(path, node, "%v", err)
	}
}

// about is how a message begins that is about the setting at path.
func about(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// nameShape is what a name of a setting or exchange may look like, however it is misspelt.
var nameShape = regexp.MustCompile(`^[A-Za-z_-]{1,20}$`)

// shown is an unknown name as a message may show it. What stands in the place of a name may be a secret that lost its own
// name; beside secrets only names that are in the group are shown.
func (r *fileReader) shown(v reflect.Value, name string) string {
	if slices.Contains(fieldNames(v), name) || !holdsSecrets(v.Type()) && nameShape.MatchString(name) {
		return fmt.Sprintf("%q", name)
	}
	return "this"
}

func holdsSecrets(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).Type == reflect.TypeFor[market.Secret]() {
			return true
		}
	}
	return false
}

func entriesOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// textOf is the text of a scalar as it stands in the file, whatever type YAML would give it: a passphrase may be 0123.
func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}
