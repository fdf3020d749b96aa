type Color uint8

type Rights uint8

type Point struct {
	X int32
	Y int32
}

type Shape interface{ isShape() }

type ShapeNothing struct{}

func (ShapeNothing) isShape() {}

type ShapeCircle struct{ Value float64 }

func (ShapeCircle) isShape() {}

type ShapePolygon struct{ Value []Point }

func (ShapePolygon) isShape() {}

type ShapePart struct{ Value struct { F0 Point; F1 *string } }

func (ShapePart) isShape() {}

type Every struct {
	Flag bool
	Letter rune
	Big uint64
	Bytes []byte
	Numbers []float32
	Letters []rune
	Name *string
	Twice **uint32
	At *Point
	Grid [][]int32
	Pairs []struct { F0 string; F1 *uint8 }
	Outcome Result[uint64, string]
	Bare Result[struct{}, struct{}]
	Color Color
	Rights Rights
	Key [4]uint8
	Both [2]string
	Places [2]Point
	Names []string
	Shape Shape
	Colors []Color
}

func putPoint(w *Writer, at int, value *Point) {
	w.S32(at, value.X)
	w.S32(at + 4, value.Y)
}

func getPoint(m *Message, at int) Point {
	return Point{m.S32(at), m.S32(at + 4)}
}

func putShape(w *Writer, at int, value Shape) {
	if _, ok := value.(ShapeNothing); ok {
		w.U8(at, 0)
	} else if c, ok := value.(ShapeCircle); ok {
		w.U8(at, 1)
		w.F64(at + 8, c.Value)
	} else if c, ok := value.(ShapePolygon); ok {
		w.U8(at, 2)
		v1 := c.Value
		n2 := len(v1)
		p2 := w.List(at + 8, n2, 8, 4)
		for i2 := range n2 {
			putPoint(w, p2 + i2 * 8, &v1[i2])
		}
	} else if c, ok := value.(ShapePart); ok {
		w.U8(at, 3)
		v3 := c.Value
		putPoint(w, at + 8, &v3.F0)
		v4 := v3.F1
		if v4 != nil {
			w.U8(at + 16, 1)
			w.Text(at + 20, (*v4))
		}
	} else {
		w.Fail("a case of shape is expected")
	}
}

func getShape(m *Message, at int) Shape {
	t1 := m.U8(at)
	var v1 Shape
	if t1 == 0 {
		v1 = ShapeNothing{}
	} else if t1 == 1 {
		v1 = ShapeCircle{m.F64(at + 8)}
	} else if t1 == 2 {
		n2 := m.Number(at + 12)
		p2 := m.Number(at + 8)
		v2 := make([]Point, n2)
		for i2 := range n2 {
			v2[i2] = getPoint(m, p2 + i2 * 8)
		}
		v1 = ShapePolygon{v2}
	} else {
		t3 := m.U8(at + 16)
		var v3 *string
		if t3 == 1 {
			v3 = some(m.Text(at + 20))
		}
		v1 = ShapePart{struct { F0 Point; F1 *string }{getPoint(m, at + 8), v3}}
	}
	return v1
}

func checkShape(m *Message, at int) {
	t1 := m.CheckTag(at, 1, 4)
	if t1 == 2 {
		m.CheckList(at + 8, 8, 4)
	} else if t1 == 3 {
		t2 := m.CheckTag(at + 16, 1, 2)
		if t2 == 1 {
			m.CheckText(at + 20)
		}
	}
}

func putEvery(w *Writer, at int, value *Every) {
	w.Bool(at, value.Flag)
	w.Char(at + 4, value.Letter)
	w.U64(at + 8, value.Big)
	PutNumbers(w, at + 16, value.Bytes)
	PutNumbers(w, at + 24, value.Numbers)
	v1 := value.Letters
	n2 := len(v1)
	p2 := w.List(at + 32, n2, 4, 4)
	for i2 := range n2 {
		w.Char(p2 + i2 * 4, v1[i2])
	}
	v3 := value.Name
	if v3 != nil {
		w.U8(at + 40, 1)
		w.Text(at + 44, (*v3))
	}
	v4 := value.Twice
	if v4 != nil {
		w.U8(at + 52, 1)
		v5 := (*v4)
		if v5 != nil {
			w.U8(at + 56, 1)
			w.U32(at + 60, (*v5))
		}
	}
	v6 := value.At
	if v6 != nil {
		w.U8(at + 64, 1)
		putPoint(w, at + 68, &(*v6))
	}
	v7 := value.Grid
	n8 := len(v7)
	p8 := w.List(at + 76, n8, 8, 4)
	for i8 := range n8 {
		PutNumbers(w, p8 + i8 * 8, v7[i8])
	}
	v9 := value.Pairs
	n10 := len(v9)
	p10 := w.List(at + 84, n10, 12, 4)
	for i10 := range n10 {
		v11 := v9[i10]
		w.Text(p10 + i10 * 12, v11.F0)
		v12 := v11.F1
		if v12 != nil {
			w.U8(p10 + i10 * 12 + 8, 1)
			w.U8(p10 + i10 * 12 + 9, (*v12))
		}
	}
	v13 := value.Outcome
	if !v13.IsErr {
		w.U8(at + 96, 0)
		w.U64(at + 104, v13.Ok)
	} else if v13.IsErr {
		w.U8(at + 96, 1)
		w.Text(at + 104, v13.Err)
	} else {
		w.Fail("a case of result<u64, string> is expected")
	}
	v14 := value.Bare
	if !v14.IsErr {
		w.U8(at + 112, 0)
	} else if v14.IsErr {
		w.U8(at + 112, 1)
	} else {
		w.Fail("a case of result is expected")
	}
	w.U8(at + 113, uint8(value.Color))
	w.U8(at + 114, uint8(value.Rights))
	PutItems(w, at + 115, value.Key[:])
	v15 := value.Both
	for i16 := range 2 {
		w.Text(at + 120 + i16 * 8, v15[i16])
	}
	v17 := value.Places
	for i18 := range 2 {
		putPoint(w, at + 136 + i18 * 8, &v17[i18])
	}
	v19 := value.Names
	n20 := len(v19)
	p20 := w.List(at + 152, n20, 8, 4)
	for i20 := range n20 {
		w.Text(p20 + i20 * 8, v19[i20])
	}
	putShape(w, at + 160, value.Shape)
	v21 := value.Colors
	n22 := len(v21)
	p22 := w.List(at + 192, n22, 1, 1)
	for i22 := range n22 {
		w.U8(p22 + i22, uint8(v21[i22]))
	}
}

func getEvery(m *Message, at int) Every {
	n1 := m.Number(at + 36)
	p1 := m.Number(at + 32)
	v1 := make([]rune, n1)
	for i1 := range n1 {
		v1[i1] = m.Char(p1 + i1 * 4)
	}
	t2 := m.U8(at + 40)
	var v2 *string
	if t2 == 1 {
		v2 = some(m.Text(at + 44))
	}
	t3 := m.U8(at + 52)
	var v3 **uint32
	if t3 == 1 {
		t4 := m.U8(at + 56)
		var v4 *uint32
		if t4 == 1 {
			v4 = some(m.U32(at + 60))
		}
		v3 = some(v4)
	}
	t5 := m.U8(at + 64)
	var v5 *Point
	if t5 == 1 {
		v5 = some(getPoint(m, at + 68))
	}
	n6 := m.Number(at + 80)
	p6 := m.Number(at + 76)
	v6 := make([][]int32, n6)
	for i6 := range n6 {
		v6[i6] = GetNumbers[int32](m, p6 + i6 * 8)
	}
	n7 := m.Number(at + 88)
	p7 := m.Number(at + 84)
	v7 := make([]struct { F0 string; F1 *uint8 }, n7)
	for i7 := range n7 {
		t8 := m.U8(p7 + i7 * 12 + 8)
		var v8 *uint8
		if t8 == 1 {
			v8 = some(m.U8(p7 + i7 * 12 + 9))
		}
		v7[i7] = struct { F0 string; F1 *uint8 }{m.Text(p7 + i7 * 12), v8}
	}
	t9 := m.U8(at + 96)
	var v9 Result[uint64, string]
	if t9 == 0 {
		v9 = Result[uint64, string]{Ok: m.U64(at + 104)}
	} else {
		v9 = Result[uint64, string]{IsErr: true, Err: m.Text(at + 104)}
	}
	t10 := m.U8(at + 112)
	var v10 Result[struct{}, struct{}]
	if t10 == 0 {
		v10 = Result[struct{}, struct{}]{}
	} else {
		v10 = Result[struct{}, struct{}]{IsErr: true}
	}
	v11 := [2]string{}
	for i11 := range 2 {
		v11[i11] = m.Text(at + 120 + i11 * 8)
	}
	v12 := [2]Point{}
	for i12 := range 2 {
		v12[i12] = getPoint(m, at + 136 + i12 * 8)
	}
	n13 := m.Number(at + 156)
	p13 := m.Number(at + 152)
	v13 := make([]string, n13)
	for i13 := range n13 {
		v13[i13] = m.Text(p13 + i13 * 8)
	}
	n14 := m.Number(at + 196)
	p14 := m.Number(at + 192)
	v14 := make([]Color, n14)
	for i14 := range n14 {
		v14[i14] = Color(m.U8(p14 + i14))
	}
	return Every{m.Bool(at), m.Char(at + 4), m.U64(at + 8), GetNumbers[uint8](m, at + 16), GetNumbers[float32](m, at + 24), v1, v2, v3, v5, v6, v7, v9, v10, Color(m.U8(at + 113)), Rights(m.U8(at + 114)), [4]uint8(GetItems[uint8](m, at + 115, 4)), v11, v12, v13, getShape(m, at + 160), v14}
}

func checkEvery(m *Message, at int) {
	m.CheckBool(at)
	m.CheckChar(at + 4)
	m.CheckList(at + 16, 1, 1)
	m.CheckList(at + 24, 4, 4)
	n1 := m.CheckList(at + 32, 4, 4)
	p1 := m.Number(at + 32)
	for i1 := range n1 {
		m.CheckChar(p1 + i1 * 4)
	}
	t2 := m.CheckTag(at + 40, 1, 2)
	if t2 == 1 {
		m.CheckText(at + 44)
	}
	t3 := m.CheckTag(at + 52, 1, 2)
	if t3 == 1 {
		m.CheckTag(at + 56, 1, 2)
	}
	m.CheckTag(at + 64, 1, 2)
	n4 := m.CheckList(at + 76, 8, 4)
	p4 := m.Number(at + 76)
	for i4 := range n4 {
		m.CheckList(p4 + i4 * 8, 4, 4)
	}
	n5 := m.CheckList(at + 84, 12, 4)
	p5 := m.Number(at + 84)
	for i5 := range n5 {
		m.CheckText(p5 + i5 * 12)
		m.CheckTag(p5 + i5 * 12 + 8, 1, 2)
	}
	t6 := m.CheckTag(at + 96, 1, 2)
	if t6 == 1 {
		m.CheckText(at + 104)
	}
	m.CheckTag(at + 112, 1, 2)
	m.CheckTag(at + 113, 1, 2)
	m.CheckFlags(at + 114, 1, 3)
	for i7 := range 2 {
		m.CheckText(at + 120 + i7 * 8)
	}
	n8 := m.CheckList(at + 152, 8, 4)
	p8 := m.Number(at + 152)
	for i8 := range n8 {
		m.CheckText(p8 + i8 * 8)
	}
	checkShape(m, at + 160)
	n9 := m.CheckList(at + 192, 1, 1)
	p9 := m.Number(at + 192)
	for i9 := range n9 {
		m.CheckTag(p9 + i9, 1, 2)
	}
}
