package keys

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// lines are the text of a file, each with its end of line. They are edited by what a line looks like, for the libraries of
// YAML do not keep what people wrote. That understands the layout that we write and what people make of it by hand; the
// caller checks what came of it.
type lines []string

func linesOf(text []byte) lines {
	var all lines
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // as decode does
		all = append(all, line)
	}
	if n := len(all); n > 0 && !strings.HasSuffix(all[n-1], "\n") {
		all[n-1] += "\n"
	}
	return all
}

func (l lines) bytes() []byte { return []byte(strings.Join(l, "")) }

// indent is how far a line is indented.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// content tells whether a line is more than space and a comment.
func content(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && line[0] != '#'
}

var emptyValue = regexp.MustCompile(`^:[ \t]*(?:\[[ \t]*\]|\{[ \t]*\})?[ \t\r\n]*(#.*\n)?$`)

// section finds the line of a top-level name without a value on it, and the end of what stands under it. It adds the name to
// the end of the text if it is not there. An empty list or map beside the name is removed.
func (l lines) section(name string) (all lines, from, to int) {
	all = slices.Clone(l)
	for from = range all {
		rest, ok := strings.CutPrefix(all[from], name)
		if m := emptyValue.FindStringSubmatch(rest); ok && m != nil {
			all[from] = name + ":\n"
			if m[1] != "" {
				all[from] = name + ": " + m[1]
			}
			for to = from + 1; to < len(all) && (!content(all[to]) || all[to][0] == ' ' || all[to][0] == '-'); to++ {
			}
			return all, from, to
		}
	}
	all = append(all, name+":\n")
	return all, len(all) - 1, len(all)
}

// end is where something new goes under a name: after the last line, but before what is written there without indent, which
// is about what comes next.
func (l lines) end(from, to int) int {
	for to > from+1 && !content(l[to-1]) && indent(l[to-1]) == 0 {
		to--
	}
	return to
}

// items are the lines at which the entries of a list begin.
func (l lines) items(from, to int) []int {
	var all []int
	for i := from + 1; i < to; i++ {
		if !strings.HasPrefix(strings.TrimLeft(l[i], " "), "- ") {
			continue
		}
		if len(all) == 0 || indent(l[i]) == indent(l[all[0]]) {
			all = append(all, i)
		}
	}
	return all
}

// itemLines is a key as an entry of the list, as far to the left as it goes.
func itemLines(k *Key) (lines, error) {
	text, err := yaml.MarshalWithOptions(fileForm{Keys: []keyForm{form(k)}}, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	item := linesOf(text)[1:]
	for i := range item {
		item[i] = strings.TrimPrefix(item[i], "  ")
	}
	return item, nil
}

// withItem is the text with one key more, below the others and indented like them.
func (l lines) withItem(item lines) lines {
	l, from, to := l.section("keys")
	margin := "  "
	if items := l.items(from, to); len(items) > 0 {
		margin = strings.Repeat(" ", indent(l[items[0]]))
	}
	item = slices.Clone(item)
	for i := range item {
		item[i] = margin + item[i]
	}
	return slices.Insert(l, l.end(from, to), item...)
}

// withoutItem is the text without the key at a place of the list. A comment before it or after it stays.
func (l lines) withoutItem(place int) lines {
	l, from, to := l.section("keys")
	items := l.items(from, to)
	if place >= len(items) {
		return l
	}
	first, last := items[place], to
	if place+1 < len(items) {
		last = items[place+1]
	}
	for last > first+1 && !content(l[last-1]) {
		last--
	}
	return slices.Delete(l, first, last)
}

// client finds the line with a client's name, -1 if there is none, and the end of what stands under it. The names of the
// section are indented by margin.
func (l lines) client(name string, from, to int) (at, end, margin int) {
	margin = 2
	if i := slices.IndexFunc(l[from+1:to], content); i >= 0 {
		margin = indent(l[from+1+i])
	}
	for at = from + 1; at < to; at++ {
		if field, _, _ := strings.Cut(l[at], ":"); indent(l[at]) != margin || strings.Trim(field, ` "'`) != name {
			continue
		}
		for end = at + 1; end < to && (!content(l[end]) || indent(l[end]) > margin); end++ {
		}
		for !content(l[end-1]) { // what comes before the next name is about that
			end--
		}
		return at, end, margin
	}
	return -1, 0, margin
}

// withoutClient is the text without the settings of a client.
func (l lines) withoutClient(name string) lines {
	all, from, to := l.section("clients")
	at, end, _ := all.client(name, from, to)
	if at < 0 {
		return l
	}
	return slices.Delete(all, at, end)
}

// withClient is the text with the settings of a client.
func (l lines) withClient(c *Client) lines {
	l, from, to := l.section("clients")
	at, end, margin := l.client(c.Name, from, to)
	if at < 0 {
		at = l.end(from, to)
		l, end = slices.Insert(l, at, strings.Repeat(" ", margin)+c.Name+":\n"), at+1
	}
	if _, rest, _ := strings.Cut(l[at], ":"); content(rest) { // settings on the same line, which are all replaced
		l[at] = strings.Repeat(" ", margin) + c.Name + ":\n"
	}
	return slices.Concat(l[:at+1], l[at+1:end].withSettings(c, margin+2), l[end:])
}

// withSettings is what stands under a client's name, with its settings, indented by margin if nothing stands there.
func (l lines) withSettings(c *Client, margin int) lines {
	if i := slices.IndexFunc(l, content); i >= 0 {
		margin = indent(l[i])
	}
	settings := []struct {
		field string
		value int64
	}{
		{"requests_per_second", int64(c.RequestsPerSecond)},
		{"upstream_per_minute", int64(c.UpstreamPerMinute)},
		{"max_age_ms", c.MaxAge.Milliseconds()},
		{"streams", int64(c.Streams)},
	}
	own, next := slices.Clone(l), 0
	for _, s := range settings {
		line := s.field + ": " + strconv.FormatInt(s.value, 10)
		i := slices.IndexFunc(own, func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), s.field+":") })
		switch {
		case i < 0 && s.value == 0:
		case i < 0:
			own = slices.Insert(own, next, strings.Repeat(" ", margin)+line+"\n")
			next++
		case s.value == 0:
			own = slices.Delete(own, i, i+1)
		default:
			end := "\n"
			if _, comment, ok := strings.Cut(own[i], "#"); ok {
				end = " #" + comment
			}
			own[i] = strings.Repeat(" ", indent(own[i])) + line + end
			next = i + 1
		}
	}
	return own
}
