-- Wireshark dissector for fullpipe over UDP, wire format version 2 (docs/wire.md). Needs Wireshark
-- 3.6 or later.
--
-- Install: copy this file into the folder that Help > About Wireshark > Folders calls "Personal Lua
-- Plugins", or give it to tshark: tshark -X lua_script:fullpipe.lua -r FILE. Datagrams are
-- recognised by their content; where that is not enough, Analyze > Decode As (tshark: -d
-- udp.port==PORT,fullpipe).
--
-- It judges as strictly as fullpipe itself: what fullpipe drops is marked as malformed, with the
-- reason.

local fullpipe = Proto("fullpipe", "fullpipe over UDP")

local VERSION = 2
local PORT = 6220
local HEADER = 12
local NUMBERED = 24
local ACK = 48
local BLOCK = 16
local MOST_BLOCKS = 4
local NO_LIMIT = 0xffffffff
-- Numbers lie below 2^62.
local MOST_NUMBER = UInt64.new(0, 0x40000000)

local KINDS = {
    [0] = "HELLO", [1] = "COOKIE", [2] = "OPEN", [3] = "ACCEPT", [4] = "REFUSE", [5] = "CONTROL",
    [8] = "DATA", [9] = "ACK", [10] = "DATAGRAM", [11] = "PING", [12] = "PONG",
    [13] = "PIECE",
}

local f = {
    version = ProtoField.uint8("fullpipe.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("fullpipe.kind", "Kind", base.DEC, KINDS, 0x0f),
    flags = ProtoField.uint8("fullpipe.flags", "Flags", base.HEX),
    syn = ProtoField.bool("fullpipe.syn", "SYN", 8, nil, 0x01),
    retransmission = ProtoField.bool("fullpipe.retransmission", "Retransmission", 8, nil, 0x02),
    cwr = ProtoField.bool("fullpipe.cwr", "CWR: congestion window reduced", 8, nil, 0x04),
    push = ProtoField.bool("fullpipe.push", "PUSH: acknowledge at once", 8, nil, 0x08),
    dsack = ProtoField.bool("fullpipe.dsack", "DSACK: the first block is a duplicate", 8, nil, 0x02),
    ece = ProtoField.bool("fullpipe.ece", "ECE: congestion was experienced", 8, nil, 0x04),
    blocks = ProtoField.uint8("fullpipe.sack.count", "SACK blocks", base.DEC, nil, 0x70),
    flow = ProtoField.uint16("fullpipe.flow", "Flow", base.DEC),
    session = ProtoField.uint64("fullpipe.session", "Session", base.HEX),
    seq = ProtoField.uint64("fullpipe.seq", "Sequence number (segments)", base.DEC),
    number = ProtoField.uint64("fullpipe.number", "Number", base.DEC),
    stamp = ProtoField.uint32("fullpipe.stamp", "Time stamp (us)", base.DEC),
    payload = ProtoField.bytes("fullpipe.payload", "Payload"),
    padding = ProtoField.bytes("fullpipe.padding", "Padding"),
    len = ProtoField.uint32("fullpipe.len", "Bytes of payload", base.DEC),
    cum = ProtoField.uint64("fullpipe.cum", "Next segment expected", base.DEC),
    window = ProtoField.uint32("fullpipe.window", "Window (segments)", base.DEC),
    echo = ProtoField.uint32("fullpipe.echo", "Echoed time stamp (us)", base.DEC),
    hold = ProtoField.uint32("fullpipe.hold", "Hold (us)", base.DEC),
    receiver_stamp = ProtoField.uint32("fullpipe.receiver_stamp", "Receiver's time stamp (ms)", base.DEC),
    ce = ProtoField.uint32("fullpipe.ce", "Segments that arrived marked CE", base.DEC),
    segment_nonce = ProtoField.uint8("fullpipe.segment.nonce", "Random bits of the segment", base.DEC, nil, 0x70),
    piece = ProtoField.uint32("fullpipe.piece", "Number of the whole", base.DEC),
    piece_index = ProtoField.uint8("fullpipe.piece.index", "Piece", base.DEC),
    piece_count = ProtoField.uint8("fullpipe.piece.count", "Pieces", base.DEC),
    whole = ProtoField.uint16("fullpipe.whole", "Bytes of the whole", base.DEC),
    part = ProtoField.bytes("fullpipe.part", "Part"),
    proof = ProtoField.uint32("fullpipe.proof", "Proof of reception", base.DEC),
    ect = ProtoField.uint32("fullpipe.ect", "Segments that arrived ECN-capable", base.DEC),
    sack = ProtoField.bytes("fullpipe.sack", "SACK block"),
    sack_start = ProtoField.uint64("fullpipe.sack.start", "First segment", base.DEC),
    sack_end = ProtoField.uint64("fullpipe.sack.end", "One after the last", base.DEC),
    nonce = ProtoField.bytes("fullpipe.nonce", "Nonce of the client"),
    cookie = ProtoField.bytes("fullpipe.cookie", "Cookie of the server"),
    server = ProtoField.bytes("fullpipe.server", "Public key of the server"),
    ephemeral = ProtoField.bytes("fullpipe.ephemeral", "Ephemeral public key"),
    reason = ProtoField.uint8("fullpipe.reason", "Reason", base.DEC, {
        [1] = "authentication failed", [2] = "the handshake took too long", [3] = "this handshake was used before",
        [4] = "busy", [5] = "busy for this address", [6] = "not in the server's version", [7] = "the request is too long",
        [8] = "shutting down", [10] = "encrypted tests only", [11] = "too many sessions opened",
        [12] = "another version",
    }),
    reason_number = ProtoField.uint32("fullpipe.reason.number", "Number of the reason", base.DEC),
    tag = ProtoField.bytes("fullpipe.tag", "Tag"),
    sealed = ProtoField.bool("fullpipe.sealed", "Encrypted", 8, nil, 0x80),
    ciphertext = ProtoField.bytes("fullpipe.ciphertext", "Ciphertext"),
}
fullpipe.fields = f

local e = {
    truncated = ProtoExpert.new("fullpipe.truncated", "shorter than its kind", expert.group.MALFORMED, expert.severity.ERROR),
    version = ProtoExpert.new("fullpipe.version.unknown", "another version", expert.group.UNDECODED, expert.severity.WARN),
    malformed = ProtoExpert.new("fullpipe.malformed", "malformed", expert.group.MALFORMED, expert.severity.ERROR),
    again = ProtoExpert.new("fullpipe.again", "sent again", expert.group.SEQUENCE, expert.severity.NOTE),
    duplicate = ProtoExpert.new("fullpipe.duplicate", "arrived twice", expert.group.SEQUENCE, expert.severity.NOTE),
    marked = ProtoExpert.new("fullpipe.marked", "congestion was experienced", expert.group.SEQUENCE, expert.severity.CHAT),
    closed = ProtoExpert.new("fullpipe.closed", "the window is closed", expert.group.SEQUENCE, expert.severity.NOTE),
}
fullpipe.experts = { e.truncated, e.version, e.malformed, e.again, e.duplicate, e.marked, e.closed }

-- What follows from the bytes that were captured; a capture may have cut the packet off.
local function captured(tvb, from, len)
    return tvb:captured_len() >= from + len
end

-- Every kind: check(tvb) returns what is wrong with the datagram or nil, show(tvb, tree, pinfo)
-- adds its fields.

local function check_number(tvb)
    if tvb:range(12, 8):uint64() >= MOST_NUMBER then
        return e.malformed, "a number of 2^62 or more"
    end
end

local function check_data(tvb)
    local flags = tvb:range(1, 1):uint()
    if flags >= 128 then return e.malformed, "an unknown flag" end
    local why, text = check_number(tvb)
    if why then return why, text end
    local syn, empty = flags % 2 == 1, tvb:reported_len() == NUMBERED
    if syn and not empty then return e.malformed, "a SYN with payload" end
    if empty and not syn then return e.malformed, "data without payload" end
    if syn and flags >= 4 then return e.malformed, "a SYN with CWR, PUSH or random bits" end
    -- Above bit 48 of a short flow's numbers stands which flow of its number it is.
    local number = tvb(2, 2):uint() >= 0x8000 and tvb:range(14, 6) or tvb:range(12, 8)
    if syn and number:uint64() > UInt64.new(1, 0) then
        return e.malformed, "a SYN with a number above 1"
    end
end

local function show_numbered(tvb, tree, field)
    tree:add(field, tvb:range(12, 8))
    tree:add(f.stamp, tvb:range(20, 4))
end

local function show_rest(tvb, tree, field)
    local len = tvb:captured_len() - NUMBERED
    if len > 0 then tree:add(field, tvb:range(NUMBERED, len)) end
end

local function show_data(tvb, tree, pinfo)
    local flags = tvb:range(1, 1)
    local sub = tree:add(f.flags, flags)
    for _, field in ipairs({ f.syn, f.retransmission, f.cwr, f.push, f.segment_nonce }) do sub:add(field, flags) end
    show_numbered(tvb, tree, f.seq)
    tree:add(f.len, tvb:reported_len() - NUMBERED):set_generated()
    show_rest(tvb, tree, f.payload)
    local bits = flags:uint()
    local again = math.floor(bits / 2) % 2 == 1
    if again then tree:add_proto_expert_info(e.again) end
    local name = bits % 2 == 1 and "SYN" or "Seq=" .. tostring(tvb:range(12, 8):uint64())
    pinfo.cols.info = string.format("DATA flow %d %s Len=%d%s", tvb:range(2, 2):uint(), name,
        tvb:reported_len() - NUMBERED, again and " [again]" or "")
end

local function ack_blocks(tvb)
    return math.floor(tvb:range(1, 1):uint() / 16)
end

local function check_ack(tvb)
    local flags, blocks = tvb:range(1, 1):uint(), ack_blocks(tvb)
    local syn, dsack = flags % 2 == 1, math.floor(flags / 2) % 2 == 1
    if math.floor(flags / 8) % 2 == 1 then return e.malformed, "an unknown flag" end
    if blocks > MOST_BLOCKS then return e.malformed, "more than four blocks, or an unknown flag" end
    if tvb:reported_len() ~= ACK + BLOCK * blocks then
        return e.malformed, "the length is not that of its blocks"
    end
    if dsack and blocks == 0 then return e.malformed, "DSACK without a block" end
    if syn and blocks > 0 then return e.malformed, "the answer to a SYN with a block" end
    local cum, window = tvb:range(12, 8):uint64(), tvb:range(20, 4):uint()
    local limit = cum
    if window ~= NO_LIMIT then limit = cum + UInt64.new(window, 0) end
    if cum > MOST_NUMBER or limit > MOST_NUMBER then return e.malformed, "a number above 2^62" end
    for i = 1, blocks do
        local at = ACK + BLOCK * (i - 1)
        if not captured(tvb, at, BLOCK) then return end
        local first, last = tvb:range(at, 8):uint64(), tvb:range(at + 8, 8):uint64()
        if first >= last then return e.malformed, "an empty block" end
        if last > MOST_NUMBER then return e.malformed, "a number above 2^62" end
        if first <= cum and not (dsack and i == 1) then
            return e.malformed, "a block below what is acknowledged"
        end
    end
end

local function show_ack(tvb, tree, pinfo)
    local flags, blocks = tvb:range(1, 1), ack_blocks(tvb)
    local sub = tree:add(f.flags, flags)
    for _, field in ipairs({ f.syn, f.dsack, f.ece, f.blocks }) do sub:add(field, flags) end
    tree:add(f.cum, tvb:range(12, 8))
    local window = tree:add(f.window, tvb:range(20, 4))
    tree:add(f.echo, tvb:range(24, 4))
    tree:add(f.hold, tvb:range(28, 4))
    tree:add(f.receiver_stamp, tvb:range(32, 4))
    tree:add(f.ce, tvb:range(36, 4))
    tree:add(f.ect, tvb:range(40, 4))
    tree:add(f.proof, tvb:range(44, 4))
    local segments = tvb:range(20, 4):uint()
    if segments == NO_LIMIT then window:append_text(" (no limit)") end
    if segments == 0 then tree:add_proto_expert_info(e.closed) end
    local bits = flags:uint()
    local dsack = math.floor(bits / 2) % 2 == 1
    if dsack then tree:add_proto_expert_info(e.duplicate) end
    if math.floor(bits / 4) % 2 == 1 then tree:add_proto_expert_info(e.marked) end
    local list = {}
    for i = 1, blocks do
        local at = ACK + BLOCK * (i - 1)
        if not captured(tvb, at, BLOCK) then break end
        local first, last = tvb:range(at, 8):uint64(), tvb:range(at + 8, 8):uint64()
        local text = string.format("%s-%s", tostring(first), tostring(last))
        local block = tree:add(f.sack, tvb:range(at, BLOCK))
        block:set_text(string.format("SACK block %d: %s%s", i, text, dsack and i == 1 and " (duplicate)" or ""))
        block:add(f.sack_start, tvb:range(at, 8))
        block:add(f.sack_end, tvb:range(at + 8, 8))
        list[i] = text
    end
    pinfo.cols.info = string.format("ACK flow %d %sAck=%s Win=%s%s", tvb:range(2, 2):uint(),
        bits % 2 == 1 and "SYN " or "", tostring(tvb:range(12, 8):uint64()),
        segments == NO_LIMIT and "no limit" or tostring(segments),
        #list > 0 and (dsack and " DSACK=" or " SACK=") .. table.concat(list, ",") or "")
end

local function check_plain(tvb)
    if tvb:range(1, 1):uint() ~= 0 then return e.malformed, "an unknown flag" end
    return check_number(tvb)
end

local function show_plain(tvb, tree, pinfo)
    tree:add(f.flags, tvb:range(1, 1))
    show_numbered(tvb, tree, f.number)
    show_rest(tvb, tree, f.padding)
    pinfo.cols.info = string.format("%s %d Number=%s Len=%d", KINDS[tvb:range(0, 1):uint() % 16],
        tvb:range(2, 2):uint(), tostring(tvb:range(12, 8):uint64()), tvb:reported_len())
end

-- Bytes of the part that a piece has, by what it says; 0 if it says nonsense.
local PIECE, MOST_PIECES = 20, 64
local function part_of(tvb)
    local index, count, whole = tvb:range(16, 1):uint(), tvb:range(17, 1):uint(), tvb:range(18, 2):uint()
    if count < 2 or count > MOST_PIECES or index >= count then return 0 end
    local part = math.ceil(whole / count)
    return math.max(0, math.min(part, whole - index * part))
end

local function check_piece(tvb)
    if tvb:range(1, 1):uint() ~= 0 then return e.malformed, "an unknown flag" end
    local part = part_of(tvb)
    if part == 0 then return e.malformed, "no such piece" end
    if tvb:reported_len() ~= PIECE + part then return e.malformed, "not the length of its part" end
end

local function show_piece(tvb, tree, pinfo)
    tree:add(f.flags, tvb:range(1, 1))
    tree:add(f.piece, tvb:range(12, 4))
    tree:add(f.piece_index, tvb:range(16, 1))
    tree:add(f.piece_count, tvb:range(17, 1))
    tree:add(f.whole, tvb:range(18, 2))
    local len = tvb:captured_len() - PIECE
    if len > 0 then tree:add(f.part, tvb:range(PIECE, len)) end
    pinfo.cols.info = string.format("PIECE flow %d, %d of %d, of %d bytes", tvb:range(2, 2):uint(),
        tvb:range(16, 1):uint(), tvb:range(17, 1):uint(), tvb:range(18, 2):uint())
end

-- The reasons that are given in clear.
local CLEAR = { [1] = true, [2] = true, [12] = true }

-- Handshake: fields of fixed sizes behind the header, and nothing else; a REFUSE has one of two
-- forms.
local function handshake(total, fields, other_total, other_fields)
    return {
        least = math.min(total, other_total or total),
        check = function(tvb)
            local len = tvb:reported_len()
            if len ~= total and len ~= other_total then return e.malformed, "not the length of its kind" end
            if tvb:range(1, 3):uint() ~= 0 then return e.malformed, "a flag, or a flow" end
            local accept = tvb:range(0, 1):uint() % 16 == 3
            if (tvb:range(4, 8):uint64() ~= UInt64.new(0, 0)) ~= accept then
                return e.malformed, "only ACCEPT has a session"
            end
            local kind = tvb:range(0, 1):uint() % 16
            if kind == 0 then
                for at = HEADER + 16, tvb:captured_len() - 1 do
                    if tvb:range(at, 1):uint() ~= 0 then return e.malformed, "padding that is not zero" end
                end
            end
            if kind == 4 and len == total and not CLEAR[tvb:range(HEADER + 16, 1):uint()] then
                return e.malformed, "not a reason that is given in clear"
            end
        end,
        show = function(tvb, tree, pinfo)
            tree:add(f.flags, tvb:range(1, 1))
            local at = HEADER
            for _, field in ipairs(tvb:reported_len() == total and fields or other_fields) do
                if captured(tvb, at, field[2]) then tree:add(field[1], tvb:range(at, field[2])) end
                at = at + field[2]
            end
            pinfo.cols.info = string.format("%s Len=%d", KINDS[tvb:range(0, 1):uint() % 16], tvb:reported_len())
        end,
    }
end

local NONCE, COOKIE = { f.nonce, 16 }, { f.cookie, 36 }
-- A Noise message: an ephemeral key, a sealed payload, its tag.
local function noise(payload, ...)
    local fields = { ... }
    for _, field in ipairs({ { f.ephemeral, 32 }, { f.ciphertext, payload }, { f.tag, 16 } }) do
        fields[#fields + 1] = field
    end
    return fields
end
local hello = handshake(1200, { NONCE })
local cookie = handshake(96, { NONCE, COOKIE, { f.server, 32 } })
local open = handshake(150, noise(38, NONCE, COOKIE))
local accept = handshake(84, noise(8, NONCE))
local refuse = handshake(33, { NONCE, { f.reason, 1 }, { f.reason_number, 4 } }, 81, noise(5, NONCE))

-- Messages of an open session are always sealed.
local control = {
    least = HEADER + 8 + 16,
    check = function() return e.malformed, "a control message in clear" end,
    show = function() end,
}

-- Encrypted datagrams of a session: the header in clear, a packet number, ciphertext, a tag. Flags
-- and length can be judged.
local SEAL, SEAL_TAG = 24, 16
local kinds_sealed = { [5] = true, [8] = true, [9] = true, [10] = true, [11] = true, [12] = true,
    [13] = true }

local function is_sealed(tvb)
    return tvb:captured_len() >= HEADER and kinds_sealed[tvb:range(0, 1):uint() % 16] and tvb:range(1, 1):uint() >= 128
end

local function check_sealed(tvb)
    local kind, flags = tvb:range(0, 1):uint() % 16, tvb:range(1, 1):uint() - 128
    local len, blocks = tvb:reported_len() - SEAL, math.floor(flags / 16)
    if kind == 8 then
        if flags % 2 == 1 and (flags >= 4 or len ~= NUMBERED) then return e.malformed, "not a SYN" end
        if flags % 2 == 0 and len <= NUMBERED then return e.malformed, "data without payload" end
    elseif kind == 9 then
        if blocks > MOST_BLOCKS or math.floor(flags / 8) % 2 == 1 then return e.malformed, "an unknown flag" end
        if len ~= ACK + BLOCK * blocks then return e.malformed, "the length is not that of its blocks" end
    elseif kind == 13 then
        if flags ~= 0 then return e.malformed, "an unknown flag" end
        if len <= PIECE then return e.malformed, "shorter than its kind" end
    elseif kind == 5 then
        if flags ~= 0 or tvb:range(2, 2):uint() ~= 0 then return e.malformed, "a flag, or a flow" end
        if len < HEADER then return e.malformed, "shorter than its kind" end
    else
        if flags ~= 0 then return e.malformed, "an unknown flag" end
        if len < NUMBERED then return e.malformed, "shorter than its kind" end
    end
end

local function show_sealed(tvb, tree, pinfo)
    local kind, flags = tvb:range(0, 1):uint() % 16, tvb:range(1, 1)
    local sub = tree:add(f.flags, flags)
    local known = { [8] = { f.syn, f.retransmission, f.cwr, f.push, f.segment_nonce }, [9] = { f.syn, f.dsack, f.ece, f.blocks } }
    for _, field in ipairs(known[kind] or {}) do sub:add(field, flags) end
    sub:add(f.sealed, flags)
    if not captured(tvb, HEADER, 8) then return end
    tree:add(f.number, tvb:range(HEADER, 8))
    local body = tvb:reported_len() - HEADER - 8 - SEAL_TAG
    if captured(tvb, HEADER + 8, body) then tree:add(f.ciphertext, tvb:range(HEADER + 8, body)) end
    if captured(tvb, HEADER + 8 + body, SEAL_TAG) then tree:add(f.tag, tvb:range(HEADER + 8 + body, SEAL_TAG)) end
    pinfo.cols.info = string.format("%s %d encrypted, Number=%s Len=%d", KINDS[kind], tvb:range(2, 2):uint(),
        tostring(tvb:range(HEADER, 8):uint64()), tvb:reported_len())
end

local plain = { least = NUMBERED, check = check_plain, show = show_plain }
local kinds = {
    [0] = hello, [1] = cookie, [2] = open, [3] = accept, [4] = refuse, [5] = control,
    [8] = { least = NUMBERED, check = check_data, show = show_data },
    [9] = { least = ACK, check = check_ack, show = show_ack },
    [10] = plain, [11] = plain, [12] = plain,
    [13] = { least = PIECE, check = check_piece, show = show_piece },
}

-- What is wrong with a datagram: an expert field and a text, or nil.
local function judge(tvb)
    if tvb:reported_len() < HEADER then return e.truncated, "shorter than the header" end
    local first = tvb:range(0, 1):uint()
    if math.floor(first / 16) ~= VERSION then return e.version, "version " .. math.floor(first / 16) end
    local kind = kinds[first % 16]
    if not kind then return e.malformed, "an unknown kind" end
    if is_sealed(tvb) then return check_sealed(tvb) end
    if tvb:reported_len() < kind.least then return e.truncated, "shorter than its kind" end
    if not captured(tvb, 0, kind.least) then return nil end
    return kind.check(tvb)
end

-- With segmentation offload a packet of a capture on loopback, or of the sending host, is a train:
-- datagrams of one session, all of one length but the last, which may be shorter. The length is
-- where version and session come again; 0 if this is a single datagram. The random session tells it
-- from payload.
local function train_of(tvb)
    local len = tvb:captured_len()
    if len < 2 * HEADER then return 0 end
    local session = tvb:raw(4, 8)
    if session == string.rep("\0", 8) then return 0 end
    local at = string.find(tvb:raw(0, len), session, HEADER + 5, true)
    local step = at and at - 5 or 0
    if step < NUMBERED then return 0 end
    for from = step, len - HEADER, step do
        local version = math.floor(tvb:range(from, 1):uint() / 16)
        if version ~= VERSION or tvb:raw(from + 4, 8) ~= session then return 0 end
    end
    return step
end

local function dissect_one(tvb, pinfo, root)
    local tree = root:add(fullpipe, tvb:range())
    local why, text = judge(tvb)
    if tvb:captured_len() >= HEADER then
        local first = tvb:range(0, 1)
        tree:add(f.version, first)
        if math.floor(first:uint() / 16) == VERSION then
            tree:add(f.kind, first)
            tree:add(f.flow, tvb:range(2, 2))
            tree:add(f.session, tvb:range(4, 8))
        end
    end
    if why then
        tree:add_proto_expert_info(why, text)
        pinfo.cols.info = "malformed: " .. text
        return tvb:reported_len()
    end
    local kind = kinds[tvb:range(0, 1):uint() % 16]
    if is_sealed(tvb) then
        show_sealed(tvb, tree, pinfo)
    elseif captured(tvb, 0, kind.least) then kind.show(tvb, tree, pinfo) end
    return tvb:reported_len()
end

function fullpipe.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "fullpipe"
    local step, len = train_of(tvb), tvb:captured_len()
    if step == 0 then return dissect_one(tvb, pinfo, root) end
    local count = 0
    for from = 0, len - 1, step do
        count = count + 1
        local part = tvb:range(from, math.min(step, len - from))
        dissect_one(part:tvb("Datagram " .. count), pinfo, root)
    end
    pinfo.cols.info = string.format("train of %d datagrams, Len=%d each", count, step)
    return tvb:reported_len()
end

-- Only what is valid to the last bit is claimed, and a conversation that was recognised once stays
-- ours.
local function recognise(tvb, pinfo, root)
    if tvb:captured_len() < HEADER then return false end
    local step = train_of(tvb)
    if judge(step == 0 and tvb or tvb:range(0, step):tvb()) then return false end
    fullpipe.dissector(tvb, pinfo, root)
    pinfo.conversation = fullpipe
    return true
end

fullpipe:register_heuristic("udp", recognise)
DissectorTable.get("udp.port"):add(PORT, fullpipe)
